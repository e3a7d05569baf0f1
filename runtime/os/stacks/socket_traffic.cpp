#include "runtime/os/stacks/socket_traffic.hpp"

#include "runtime/os/process/unique_fd.hpp"
#include "runtime/os/stacks/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

namespace troupe::os {

namespace {

using bytes_by_inode = std::map<std::uint64_t, std::uint64_t>;

std::optional<ino_t> network_of(const std::string& process) {
  struct stat file {};
  if (::stat(fmt::format("/proc/{}/ns/net", process).c_str(), &file) != 0)
    return std::nullopt;
  return file.st_ino;
}

/// All but what is left of closed connections: no process holds it, and it would be most of the
/// answer on a machine that opens many. TIME_WAIT's number is the one of netinet/tcp.h, which
/// cannot be read beside linux/tcp.h.
constexpr std::uint32_t time_wait = 1u << 6;
constexpr std::uint32_t held_by_processes = ~time_wait;

/// A dump of all TCP sockets of a family, each with what struct tcp_info says of it.
bool ask(int socket, std::uint8_t family) {
  struct {
    nlmsghdr head{};
    inet_diag_req_v2 what{};
  } request;
  request.head.nlmsg_len = sizeof request;
  request.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.what.sdiag_family = family;
  request.what.sdiag_protocol = IPPROTO_TCP;
  request.what.idiag_ext = 1 << (INET_DIAG_INFO - 1);
  request.what.idiag_states = held_by_processes;
  return ::send(socket, &request, sizeof request, 0) == sizeof request;
}

/// Kernels give more or less of tcp_info, by their age.
std::uint64_t carried_in(const rtattr& info) {
  tcp_info told{};
  std::memcpy(&told, RTA_DATA(&info), std::min<std::size_t>(RTA_PAYLOAD(&info), sizeof told));
  return told.tcpi_bytes_acked + told.tcpi_bytes_received;
}

void add_socket(bytes_by_inode& to, const nlmsghdr& message) {
  if (message.nlmsg_len < NLMSG_LENGTH(sizeof(inet_diag_msg)))
    return;
  const auto* socket = static_cast<const inet_diag_msg*>(NLMSG_DATA(&message));
  auto left = static_cast<int>(message.nlmsg_len - NLMSG_LENGTH(sizeof *socket));
  for (const auto* each = reinterpret_cast<const rtattr*>(socket + 1); RTA_OK(each, left);
       each = RTA_NEXT(each, left))
    if (each->rta_type == INET_DIAG_INFO)
      to[socket->idiag_inode] = carried_in(*each);
}

/// Until the kernel says that this was all, or gives nothing for a while.
void read_answer(int socket, bytes_by_inode& to) {
  std::vector<char> packet(limits::stacks_netlink_packet_max);
  std::size_t in_all = 0;
  while (in_all < limits::stacks_sockets_bytes_max) {
    const auto got = ::recv(socket, packet.data(), packet.size(), 0);
    if (got <= 0)
      return;
    in_all += static_cast<std::size_t>(got);
    auto left = static_cast<unsigned>(got);
    for (auto* each = reinterpret_cast<const nlmsghdr*>(packet.data()); NLMSG_OK(each, left);
         each = NLMSG_NEXT(each, left)) {
      if (each->nlmsg_type == NLMSG_DONE || each->nlmsg_type == NLMSG_ERROR)
        return;
      add_socket(to, *each);
    }
  }
}

bytes_by_inode all_of_this_network() {
  bytes_by_inode all;
  for (const std::uint8_t family : {AF_INET, AF_INET6}) {
    const unique_fd socket{::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)};
    constexpr timeval within{0, limits::stacks_netlink_within_us};
    if (socket &&
        ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &within, sizeof within) == 0 &&
        ask(socket.get(), family))
      read_answer(socket.get(), all);
  }
  return all;
}

} // namespace

std::uint64_t socket_traffic::of(pid_t pid, const std::set<std::uint64_t>& sockets) {
  if (sockets.empty() || network_of("self") != network_of(std::to_string(pid)))
    return 0;
  if (!by_inode_)
    by_inode_ = all_of_this_network();
  std::uint64_t sum = 0;
  for (const auto inode : sockets)
    if (const auto found = by_inode_->find(inode); found != by_inode_->end())
      sum += found->second;
  return sum;
}

} // namespace troupe::os
