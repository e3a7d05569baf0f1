#include "runtime/os/net/listening.hpp"

#include "runtime/os/net/addresses.hpp"

#include <boost/asio/ip/v6_only.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <limits>
#include <thread>
#include <utility>

#include <unistd.h>

namespace troupe::os {

namespace {

namespace asio = boost::asio;
namespace ip = asio::ip;
using boost::system::error_code;

/// How often a free port is looked for that is free on all addresses of a name.
constexpr int port_attempts = 16;
/// Of two processes that listen at the same moment the kernel may tell both that the port is in use
/// (2 of 20,000 tries on two processors): each sees the other's attempt. So a process that was
/// refused tries again, after a pause that is not the other's.
constexpr int rematches = 2;

std::chrono::microseconds own_pause(int attempt) {
  const auto mixed = static_cast<std::uint32_t>(::getpid() + attempt) * 2'654'435'761u;
  return std::chrono::microseconds(500 + mixed % 3'000);
}

/// The kernel takes net.core.somaxconn instead.
constexpr int backlog = std::numeric_limits<int>::max();

/// Names often have an address that this host has not: "localhost" one of IPv6 in many containers.
bool not_ours(const error_code& ec) {
  return ec == asio::error::address_family_not_supported || ec.value() == EADDRNOTAVAIL;
}

error_code bind_one(asio::io_context& context, const ip::tcp::endpoint& address, listening& out) {
  const int descriptor = make_socket(address);
  if (descriptor < 0)
    return {errno, boost::system::system_category()};
  tcp_acceptor acceptor(context.get_executor(), address.protocol(), descriptor);
  error_code ec;
  acceptor.set_option(asio::socket_base::reuse_address(true), ec);
  if (!ec && address.address().is_v6())
    acceptor.set_option(ip::v6_only(!address.address().is_unspecified()), ec);
  if (!ec)
    acceptor.bind(address, ec);
  if (!ec)
    acceptor.listen(backlog, ec);
  if (ec)
    return ec;
  out.port = acceptor.local_endpoint().port();
  out.acceptors.push_back(std::move(acceptor));
  return {};
}

error_code bind_all(asio::io_context& context, std::vector<ip::tcp::endpoint> addresses,
                    listening& out) {
  out = {};
  out.port = addresses.front().port();
  error_code last;
  for (auto& address : addresses) {
    address.port(out.port);
    last = bind_one(context, address, out);
    if (last && !not_ours(last))
      return last;
  }
  return out.acceptors.empty() ? last : error_code{};
}

} // namespace

result<listening> listen_on(asio::io_context& context, const ports::endpoint& where,
                            std::vector<ip::tcp::endpoint> addresses) {
  // A port that is free on one address may be busy on the next: then another one is tried, if we
  // may choose.
  const int attempts = where.port == 0 ? port_attempts : 1 + rematches;
  error_code ec;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    if (where.port != 0 && attempt > 0)
      std::this_thread::sleep_for(own_pause(attempt));
    listening open;
    ec = bind_all(context, addresses, open);
    if (!ec)
      return open;
    if (where.port != 0 && ec != asio::error::address_in_use)
      break;
  }
  const auto why = ec == asio::error::address_in_use
                       ? std::string("the port is in use by another program")
                       : ec.message();
  return failure(errc::refused, fmt::format("cannot listen on {}: {}", to_string(where), why));
}

bool lacks_resources(int number) {
  return number == EMFILE || number == ENFILE || number == ENOBUFS || number == ENOMEM;
}

} // namespace troupe::os
