#include "runtime/os/memory/readers.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>

namespace troupe::os {

namespace {

/// A file of its own, unlike a duplicate: that is what the kernel counts.
unique_fd open_to_read(int descriptor, int more_flags) {
  const auto name = fmt::format("/proc/self/fd/{}", descriptor);
  for (;;)
    if (const auto opened = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | more_flags);
        opened >= 0 || errno != EINTR)
      return unique_fd(opened);
}

} // namespace

result<memory_reader> memory_reader::open(int descriptor) {
  auto opened = open_to_read(descriptor, 0);
  if (!opened)
    return failure(errc::refused, fmt::format("opening the memory of descriptor {}: {}", descriptor,
                                              std::strerror(errno)));
  return memory_reader(std::move(opened));
}

/// By a write lease: the kernel grants it to the only process that has a file open, and lets other
/// opens wait.
std::optional<sole_reader> sole_reader::open(int descriptor) {
  auto opened = open_to_read(descriptor, O_NONBLOCK);
  // The kernel sends a signal when another process waits; its default would end this process. This
  // one does nothing to a program that has not asked for it.
  if (!opened || fcntl(opened.get(), F_SETSIG, SIGURG) != 0 ||
      fcntl(opened.get(), F_SETLEASE, F_WRLCK) != 0)
    return std::nullopt;
  return sole_reader(std::move(opened));
}

/// Not left to closing the file: a child that was forked meanwhile has it open.
sole_reader::~sole_reader() {
  if (leased_)
    fcntl(leased_.get(), F_SETLEASE, F_UNLCK);
}

} // namespace troupe::os
