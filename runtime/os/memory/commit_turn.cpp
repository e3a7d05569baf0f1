#include "runtime/os/memory/commit_turn.hpp"

#include <cerrno>
#include <chrono>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>

namespace troupe::os {

namespace {

constexpr duration rest = 10ms;

} // namespace

commit_turn::~commit_turn() {
  if (locked_.get() >= 0)
    ::flock(locked_.get(), LOCK_UN);
}

/// There is no lock of files with a limit of time, and the holder needs milliseconds or seconds.
std::optional<commit_turn> commit_turn::wait(const std::filesystem::path& shared, duration within) {
  unique_fd folder(::open(shared.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0)
    return std::nullopt;
  const auto until = std::chrono::steady_clock::now() + within;
  while (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK || std::chrono::steady_clock::now() > until)
      return std::nullopt;
    std::this_thread::sleep_for(rest);
  }
  return commit_turn(std::move(folder));
}

} // namespace troupe::os
