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

/// A lease to write is granted to the only one who has opened a file, and keeps others out.
class sole_lease {
 public:
  explicit sole_lease(int opened) : opened_(opened) {
    // The kernel tells of who waits by a signal, and its own choice would end this process. This
    // one does nothing to a program that has not asked for it.
    granted_ = fcntl(opened, F_SETSIG, SIGURG) == 0 && fcntl(opened, F_SETLEASE, F_WRLCK) == 0;
  }
  sole_lease(const sole_lease&) = delete;
  sole_lease& operator=(const sole_lease&) = delete;
  /// Not left to closing the file: a child that was forked meanwhile would have it open.
  ~sole_lease() {
    if (granted_)
      fcntl(opened_, F_SETLEASE, F_UNLCK);
  }
  bool granted() const { return granted_; }

 private:
  int opened_;
  bool granted_ = false;
};

} // namespace

result<memory_reader> memory_reader::open(int descriptor) {
  auto opened = open_to_read(descriptor, 0);
  if (!opened)
    return failure(errc::refused, fmt::format("opening the memory of descriptor {}: {}", descriptor,
                                              std::strerror(errno)));
  return memory_reader(std::move(opened));
}

bool while_nobody_reads(int descriptor, const std::function<void()>& what) {
  const auto opened = open_to_read(descriptor, O_NONBLOCK);
  if (!opened)
    return false;
  const sole_lease lease(opened.get());
  if (lease.granted())
    what();
  return lease.granted();
}

} // namespace troupe::os
