#include "runtime/os/process/local_services.hpp"

#include "runtime/base/invariant.hpp"
#include "runtime/os/process/launch_plan.hpp"
#include "runtime/os/process/unique_fd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::os {

namespace {

/// Binds to a free port of all addresses of a family.
result<std::uint16_t> free_port_of(int family) {
  unique_fd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket)
    return failure(errc::unavailable, fmt::format("no free port: {}", system_message(errno)));
  sockaddr_storage where{};
  where.ss_family = static_cast<sa_family_t>(family);
  socklen_t size = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  auto* address = reinterpret_cast<sockaddr*>(&where);
  const int both_families = 0;
  if (family == AF_INET6)
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &both_families, sizeof both_families);
  if (::bind(socket.get(), address, size) != 0 || ::getsockname(socket.get(), address, &size) != 0)
    return failure(errc::unavailable, fmt::format("no free port: {}", system_message(errno)));
  // The port lies at the same place in both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&where)->sin_port);
}

/// Workers choose what lies there: a pipe must not make us wait.
struct opened_file {
  explicit opened_file(const std::string& path)
      : descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
    struct stat found {};
    if (descriptor && ::fstat(descriptor.get(), &found) == 0 && S_ISREG(found.st_mode))
      size = static_cast<std::size_t>(found.st_size);
  }

  unique_fd descriptor;
  std::optional<std::size_t> size; ///< nothing if it is no regular file
};

std::string content_of(const opened_file& file, std::size_t from, std::size_t limit) {
  std::string content(limit, '\0');
  std::size_t have = 0;
  while (have < limit) {
    const auto got = ::pread(file.descriptor.get(), content.data() + have, limit - have,
                             static_cast<off_t>(from + have));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      break;
    have += static_cast<std::size_t>(got);
  }
  content.resize(have);
  return content;
}

} // namespace

result<void> open_missing_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0)
      continue;
    // The lowest free number is this stream's: the streams before it are open.
    const int opened = ::open("/dev/null", O_RDWR);
    if (opened != stream) {
      const auto why =
          opened < 0 ? system_message(errno) : "another thread opened a file meanwhile";
      return failure(errc::unavailable,
                     fmt::format("file descriptor {} is closed, and /dev/null cannot be opened in "
                                 "its place: {}",
                                 stream, why));
    }
  }
  return {};
}

open_files_limit raise_open_files() {
  rlimit limit{};
  invariant(::getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit failed");
  const std::uint64_t before = limit.rlim_cur;
  // The kernel's own bound may have been lowered below the hard limit since that was set.
  std::uint64_t kernel_most = limit.rlim_max;
  std::ifstream("/proc/sys/fs/nr_open") >> kernel_most;
  limit.rlim_cur = std::max<rlim_t>(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, kernel_most));
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0)
    return {before, before};
  return {before, limit.rlim_cur};
}

// On every address: torch's store listens on all of them, whatever name others reach it under.
result<std::uint16_t> free_port() {
  auto port = free_port_of(AF_INET6);
  return port ? port : free_port_of(AF_INET);
}

std::int64_t unix_time_ms() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

std::optional<std::string> read_small_file(const std::string& path, std::size_t limit) {
  const opened_file file(path);
  if (!file.size)
    return std::nullopt;
  return content_of(file, 0, limit);
}

std::optional<std::string> read_end_of_file(const std::string& path, std::size_t limit) {
  const opened_file file(path);
  if (!file.size)
    return std::nullopt;
  return content_of(file, *file.size > limit ? *file.size - limit : 0, limit);
}

} // namespace troupe::os
