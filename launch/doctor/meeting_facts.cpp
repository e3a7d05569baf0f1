#include "launch/doctor/meeting.hpp"
#include "launch/options/values.hpp"
#include "launch/shell/inquiry.hpp"
#include "launch/shell/local_masters.hpp"
#include "launch/wiring/default_token.hpp"
#include "launch/wiring/endpoint_name.hpp"
#include "launch/wiring/machine.hpp"
#include "launch/wiring/program.hpp"
#include "runtime/os/contents_of.hpp"
#include "runtime/os/entries_of.hpp"
#include "runtime/os/net/addresses.hpp"
#include "runtime/os/net/listening.hpp"
#include "runtime/os/process/launch_plan.hpp"
#include "runtime/os/process/unique_fd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <set>
#include <sstream>

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

/// What the judges of meeting.hpp are told: names are resolved, the port is opened and the master
/// is dialled as the launcher does it.
namespace troupe::launch::doctor {

namespace fs = std::filesystem;

namespace {

constexpr auto connect_within_ms = 3'000;

/// The sockets that listen at a port, as links to them are called.
std::set<std::string> listening_at(std::uint16_t port) {
  std::set<std::string> found;
  for (const auto* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"})
    for (const auto& socket : listening_sockets(os::contents_of(table)))
      if (socket.where.port == port)
        found.insert(fmt::format("socket:[{}]", socket.inode));
  return found;
}

/// Other users' processes show their files to root only.
std::optional<port_owner> owner_of(std::uint16_t port) {
  const auto sockets = listening_at(port);
  if (sockets.empty())
    return std::nullopt;
  std::error_code gone;
  for (const auto& process : os::entries_of("/proc")) {
    const auto pid = digits(process.path().filename());
    if (!pid)
      continue;
    for (const auto& file : os::entries_of(process.path() / "fd"))
      if (sockets.count(fs::read_symlink(file.path(), gone).string()) != 0)
        return port_owner{static_cast<int>(*pid),
                          stripped(os::contents_of(process.path() / "comm"))};
  }
  return std::nullopt;
}

std::string connect_to(const addrinfo& address) {
  const os::unique_fd socket(
      ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket)
    return os::system_message(errno);
  if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0)
    return {};
  if (errno != EINPROGRESS)
    return os::system_message(errno);
  pollfd done{socket.get(), POLLOUT, 0};
  if (::poll(&done, 1, connect_within_ms) <= 0)
    return "no answer in time";
  int why = 0;
  socklen_t size = sizeof why;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &why, &size);
  return why == 0 ? std::string() : os::system_message(why);
}

/// Empty if something listens there; else why there is no connection, of the last address tried.
std::string why_not_connected(const ports::endpoint& where) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  const auto port = std::to_string(where.port);
  const int no_address = ::getaddrinfo(where.host.c_str(), port.c_str(), &wanted, &raw);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> found(raw, &::freeaddrinfo);
  if (no_address != 0)
    return ::gai_strerror(no_address);
  std::string why = "it has no address";
  for (const auto* each = found.get(); each && !why.empty(); each = each->ai_next)
    why = connect_to(*each);
  return why;
}

std::string why_not_listening(const ports::endpoint& where, bool loopback_only) {
  const auto addresses = os::listening_addresses(where, loopback_only);
  if (!addresses)
    return addresses.error().what;
  os::io_thread io;
  const auto open = os::listen_on(io.context(), where, *addresses);
  return open ? std::string() : open.error().what;
}

void ask_master(endpoint_facts& seen, const common_options& o) {
  os::io_thread io;
  const auto timing = link::for_peers(1, link::for_peers(limits::nodes_max).lease);
  const auto transport = open_transport(
      io, o, [](const std::string&, const log::event&) {}, timing);
  if (!transport) {
    seen.no_master = transport.error().what;
    return;
  }
  inquiry master(*transport, seen.where.master, std::make_shared<wake_up>(), [] { return false; });
  const auto linked = master.link();
  seen.no_master = linked ? std::string() : linked.error().what;
  seen.job = master.job();
}

void look_at_outgoing_ports(endpoint_facts& seen) {
  std::istringstream range(os::contents_of("/proc/sys/net/ipv4/ip_local_port_range"));
  range >> seen.outgoing_from >> seen.outgoing_to;
  for (const auto& part :
       split(stripped(os::contents_of("/proc/sys/net/ipv4/ip_local_reserved_ports")), ',')) {
    const auto ends = split(part, '-');
    const auto first = digits(ends.front()), last = digits(ends.back());
    if (first && last && *first <= seen.where.master.port && seen.where.master.port <= *last)
      seen.outgoing_avoids_it = true;
  }
}

} // namespace

host_facts look_at_host(const launcher_options& o, const machine_facts& machine) {
  host_facts seen;
  seen.nodes = o.nodes_max;
  seen.name = machine.host;
  seen.unresolved = look_up(machine.host);
  if (!seen.unresolved.empty())
    return seen;
  const auto own = os::own_addresses(machine.host);
  seen.ours = !own.empty();
  seen.loopback_only = seen.ours && std::all_of(own.begin(), own.end(),
                                                [](const auto& a) { return a.is_loopback(); });
  return seen;
}

endpoint_facts look_at_endpoint(const launcher_options& o, const machine_facts& machine) {
  endpoint_facts seen;
  seen.nodes = o.nodes_max;
  seen.where = place_master(o);
  seen.from = o.rendezvous.endpoint_from;
  seen.patience = o.rendezvous.settings.read_timeout.value_or(limits::connect_within);
  const auto& master = seen.where.master;
  if (master.port == 0) {
    const auto store = seen.where.store_port;
    if (store != 0)
      seen.cannot_listen = why_not_listening({"*", store}, false);
    if (!seen.cannot_listen.empty())
      seen.owner = owner_of(store);
    return seen;
  }
  seen.unresolved = look_up(master.host);
  if (!seen.unresolved.empty())
    return seen;
  auto common = o.common;
  take_default_token(common, master, machine);
  seen.ours = !os::own_addresses(master.host).empty();
  seen.loopback = os::is_loopback(master.host);
  if (seen.where.host != placement::hosting::elsewhere &&
      (seen.ours || seen.where.host == placement::hosting::here)) {
    look_at_outgoing_ports(seen);
    seen.cannot_listen = why_not_listening(master, !common.reaches_other_machines());
    if (seen.cannot_listen.empty())
      return seen;
    seen.owner = owner_of(master.port);
  }
  seen.cannot_connect = why_not_connected(master);
  if (seen.cannot_connect->empty())
    ask_master(seen, common);
  return seen;
}

} // namespace troupe::launch::doctor
