#include "launch/keeper/packet.hpp"

#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>

namespace troupe::launch {

packet about(packet::kind what, std::uint64_t process, std::int32_t number) {
  packet p;
  p.what = what;
  p.process = process;
  p.number = number;
  return p;
}

std::pair<os::unique_fd, os::unique_fd> packet_pair() {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return {};
  return {os::unique_fd(ends[0]), os::unique_fd(ends[1])};
}

bool send_packet(int socket, const packet& p, int file, bool wait) {
  iovec data{const_cast<packet*>(&p), sizeof p};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (file >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    auto* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &file, sizeof file);
  }
  for (;;) {
    const auto sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0)
      return sent == static_cast<ssize_t>(sizeof p);
    if (errno == EINTR)
      continue;
    if (!wait || errno != EAGAIN)
      return false;
    // Whether the socket itself waits is not ours to say: the I/O library has its wish about that.
    pollfd room{socket, POLLOUT, 0};
    (void)::poll(&room, 1, -1);
  }
}

std::optional<received_packet> receive_packet(int socket, bool wait) {
  received_packet got;
  iovec data{&got.what, sizeof got.what};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t size = 0;
  // A peer that closes with something unread makes the kernel say ECONNRESET, once. What that peer
  // had sent is still there behind it.
  do
    size = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
  while (size < 0 && (errno == EINTR || errno == ECONNRESET));
  if (size != static_cast<ssize_t>(sizeof got.what))
    return std::nullopt;
  const auto* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    int file = -1;
    std::memcpy(&file, CMSG_DATA(header), sizeof file);
    got.file = os::unique_fd(file);
  }
  return got;
}

} // namespace troupe::launch
