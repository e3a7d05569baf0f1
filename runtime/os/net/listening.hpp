#pragma once

#include "runtime/base/result.hpp"
#include "runtime/ports/transport.hpp"

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <vector>

namespace troupe::os {

/// Without type erasure of the executor: there is only one.
using tcp_acceptor = boost::asio::basic_socket_acceptor<boost::asio::ip::tcp,
                                                        boost::asio::io_context::executor_type>;

/// Open for connections, on one or more addresses of one port.
struct listening {
  std::vector<tcp_acceptor> acceptors;
  std::uint16_t port = 0;
};

/// Listens on all of the addresses on one port, but for those that are not this host's; "::" is
/// every address of either family. The backlog is the system's maximum. Port 0 picks one that is
/// free on all. `refused` with a line that names `where`.
result<listening> listen_on(boost::asio::io_context& context, const ports::endpoint& where,
                            std::vector<boost::asio::ip::tcp::endpoint> addresses);

/// Whether accepting failed because this process, or the system, has run out of something.
bool lacks_resources(int number);

} // namespace troupe::os
