#include "launch/worker/worker_socket.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>

namespace troupe::launch {

namespace {

constexpr std::uint32_t waiting_for_each = 4;
constexpr std::uint32_t waiting_most = 4'096;

} // namespace

worker_socket::worker_socket(const std::string& mark, std::uint32_t local_ranks)
    : name_("@troupe-" + mark), socket_(std::make_shared<os::unique_fd>(::socket(
                                    AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name_.resize(std::min(name_.size(), sizeof address.sun_path));
  std::memcpy(address.sun_path, name_.data(), name_.size());
  address.sun_path[0] = '\0';
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
  const auto waiting = std::min(local_ranks * waiting_for_each, waiting_most);
  if (*socket_ && ::bind(socket_->get(), reinterpret_cast<const sockaddr*>(&address), bytes) == 0 &&
      ::listen(socket_->get(), static_cast<int>(waiting)) == 0)
    return;
  why_not_ = std::strerror(errno);
  name_.clear();
  *socket_ = {};
}

} // namespace troupe::launch
