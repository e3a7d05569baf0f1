#include "runtime/os/process/packet.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>

namespace troupe::os {

std::pair<unique_fd, unique_fd> packet_pair() {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return {};
  return {unique_fd(ends[0]), unique_fd(ends[1])};
}

bool send_packet(int socket, const messages::any_msg& m, int file, bool wait) {
  const auto bytes = m.words().asBytes();
  iovec data{const_cast<unsigned char*>(bytes.begin()), bytes.size()};
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
      return sent == static_cast<ssize_t>(bytes.size());
    if (errno == EINTR)
      continue;
    if (!wait || errno != EAGAIN)
      return false;
    // Whether the socket itself waits is not ours to say: the I/O library has its wish about that.
    pollfd room{socket, POLLOUT, 0};
    (void)::poll(&room, 1, -1);
  }
}

std::optional<received_packet> receive_packet(int socket, bool wait, unsigned char* room,
                                              std::size_t room_bytes) {
  iovec data{room, room_bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_LEN(sizeof(int)); // the padding behind it has room for a second one
  ssize_t size = 0;
  // A peer that closes with something unread makes the kernel say ECONNRESET, once. What that peer
  // had sent is still there behind it.
  do
    size = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
  while (size < 0 && (errno == EINTR || errno == ECONNRESET));
  if (size == 0)
    errno = 0;
  if (size <= 0)
    return std::nullopt;
  received_packet got{failure(errc::invalid, ""), {}};
  const auto* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    int file = -1;
    std::memcpy(&file, CMSG_DATA(header), sizeof file);
    got.file = unique_fd(file);
  }
  if ((message.msg_flags & MSG_TRUNC) != 0)
    got.what = failure(errc::invalid, fmt::format("more than {} bytes", room_bytes));
  else
    got.what = messages::admit(room, static_cast<std::size_t>(size));
  return got;
}

} // namespace troupe::os
