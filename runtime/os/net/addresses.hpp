#pragma once

#include "runtime/base/result.hpp"
#include "runtime/os/net/stream.hpp"
#include "runtime/ports/transport.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <optional>
#include <vector>

namespace troupe::os {

/// The address itself if `host` is one in numbers.
std::optional<boost::asio::ip::address> numeric(const std::string& host);

/// All addresses on which to listen as `host`: those of a name, an address, or every address for
/// "*" and "". Blocks while it asks for a name.
result<std::vector<boost::asio::ip::tcp::endpoint>>
listening_addresses(const ports::endpoint& where);

/// Without certificates only this host may talk to itself. `purpose` is "listening on" or
/// "dialling".
result<void> check_loopback(const char* purpose, const ports::endpoint& where,
                            const boost::asio::ip::address& address);

/// "10.0.0.7:51234", also when the address came as IPv4 in IPv6.
std::string to_text(const boost::asio::ip::tcp::endpoint& e);

/// A socket that no child process inherits, not even one that starts in this moment. Negative with
/// errno set.
int make_socket(const boost::asio::ip::tcp::endpoint& for_address);

} // namespace troupe::os
