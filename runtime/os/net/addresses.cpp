#include "runtime/os/net/addresses.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

namespace troupe::os {

namespace {

namespace ip = boost::asio::ip;

using found_ptr = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

ip::tcp::endpoint endpoint_of(const addrinfo& found) {
  ip::tcp::endpoint e;
  std::memcpy(e.data(), found.ai_addr, found.ai_addrlen);
  e.resize(found.ai_addrlen);
  return e;
}

/// A socket for every IPv6 address takes IPv4 too; a kernel without IPv6 has only the latter.
ip::address any_address() {
  const int probe = make_socket({ip::address_v6::any(), 0});
  if (probe < 0)
    return ip::address_v4::any();
  ::close(probe);
  return ip::address_v6::any();
}

/// Whether this host has the address: then a socket can be bound to it.
bool is_ours(const ip::tcp::endpoint& e) {
  const ip::tcp::endpoint some_port(e.address(), 0);
  const int probe = make_socket(some_port);
  if (probe < 0)
    return false;
  const bool bound = ::bind(probe, some_port.data(), static_cast<socklen_t>(some_port.size())) == 0;
  ::close(probe);
  return bound;
}

} // namespace

std::optional<ip::address> numeric(const std::string& host) {
  boost::system::error_code ec;
  const auto address = ip::make_address(host, ec);
  if (ec)
    return std::nullopt;
  return address;
}

bool is_loopback(const std::string& host) {
  const auto address = numeric(host);
  return address ? address->is_loopback() : host == "localhost";
}

std::string address_for_others(const ip::address& local, const std::string& dialled) {
  const auto said = numeric(dialled);
  return local.is_loopback() && !(said && said->is_loopback()) ? dialled : local.to_string();
}

std::optional<std::string> zone_validation_error(const std::string& host,
                                                 const ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_link_local() || address.to_v6().scope_id() != 0)
    return std::nullopt;
  const auto zone = host.find('%');
  return zone == std::string::npos
             ? std::string("a link-local address needs the interface behind it, as in fe80::1%eth0")
             : fmt::format("there is no interface {}", host.substr(zone + 1));
}

std::vector<ip::address> own_addresses(const std::string& host) {
  std::vector<ip::address> own;
  if (const auto address = numeric(host)) {
    if (is_ours({*address, 0}))
      own.push_back(*address);
    return own;
  }
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  const int why = host.empty() ? EAI_NONAME : ::getaddrinfo(host.c_str(), nullptr, &wanted, &raw);
  const found_ptr found(raw, &::freeaddrinfo);
  for (const auto* each = why == 0 ? found.get() : nullptr; each; each = each->ai_next)
    if (is_ours(endpoint_of(*each)))
      own.push_back(endpoint_of(*each).address());
  return own;
}

std::optional<ip::address> source_for(const ip::address& dialled,
                                      const std::vector<ip::address>& own) {
  const auto fits = [&dialled](const ip::address& a) {
    return a.is_v6() == dialled.is_v6() && a.is_loopback() == dialled.is_loopback();
  };
  const auto found = std::find_if(own.begin(), own.end(), fits);
  return found == own.end() ? std::nullopt : std::optional(*found);
}

result<std::vector<ip::tcp::endpoint>> listening_addresses(const ports::endpoint& where,
                                                           bool loopback_only) {
  if (where.host.empty() || where.host == "*")
    return std::vector{ip::tcp::endpoint(any_address(), where.port)};
  if (const auto address = numeric(where.host)) {
    if (const auto wrong = zone_validation_error(where.host, *address))
      return failure(errc::refused,
                     fmt::format("cannot listen on {}: {}", to_string(where), *wrong));
    return std::vector{ip::tcp::endpoint(*address, where.port)};
  }
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE;
  addrinfo* raw = nullptr;
  const int why = ::getaddrinfo(where.host.c_str(), nullptr, &wanted, &raw);
  const found_ptr found(raw, &::freeaddrinfo);
  if (why != 0)
    return failure(errc::refused,
                   fmt::format("cannot listen on {}: {}", to_string(where), ::gai_strerror(why)));
  std::vector<ip::tcp::endpoint> addresses;
  for (const auto* each = found.get(); each; each = each->ai_next) {
    addresses.push_back(endpoint_of(*each));
    addresses.back().port(where.port);
  }
  if (!loopback_only && where.host != "localhost" &&
      std::any_of(addresses.begin(), addresses.end(), is_ours))
    return std::vector{ip::tcp::endpoint(any_address(), where.port)};
  return addresses;
}

result<void> check_loopback(const char* purpose, const ports::endpoint& where,
                            const ip::address& address) {
  const bool mapped = address.is_v6() && address.to_v6().is_v4_mapped();
  const bool loopback = mapped ? ip::make_address_v4(ip::v4_mapped, address.to_v6()).is_loopback()
                               : address.is_loopback();
  if (loopback)
    return {};
  return failure(
      errc::refused,
      fmt::format("{} {} needs a job token, the same on each node: `actor-launcher --new-token` "
                  "makes one (or give certificates); without, only loopback addresses may be used",
                  purpose, to_string(where)));
}

namespace {

/// IPv4 where it came as IPv4 in IPv6.
ip::address unmapped(const ip::address& address) {
  return address.is_v6() && address.to_v6().is_v4_mapped()
             ? ip::make_address_v4(ip::v4_mapped, address.to_v6())
             : address;
}

} // namespace

std::string network_of(const ip::address& address) {
  const auto plain = unmapped(address);
  if (plain.is_v4())
    return plain.to_string();
  auto bytes = plain.to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), 0);
  return ip::address_v6(bytes, plain.to_v6().scope_id()).to_string() + "/64";
}

std::string to_text(const ip::tcp::endpoint& e) {
  return ports::to_string(ports::endpoint{unmapped(e.address()).to_string(), e.port()});
}

int make_socket(const ip::tcp::endpoint& for_address) {
  return ::socket(for_address.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                  IPPROTO_TCP);
}

} // namespace troupe::os
