#include "runtime/os/memory/write_watch.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef UFFD_FEATURE_WP_UNPOPULATED // Linux 6.4
#define UFFD_FEATURE_WP_UNPOPULATED (1u << 13)
#endif
#ifndef USERFAULTFD_IOC_NEW // /dev/userfaultfd, Linux 6.1
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif
#ifndef MADV_POPULATE_READ // Linux 5.14
#define MADV_POPULATE_READ 22
#endif

namespace troupe::os {

namespace {

constexpr int flags = O_CLOEXEC | O_NONBLOCK;

uffdio_range range_of(char* begin, std::uint64_t bytes) {
  return {reinterpret_cast<std::uintptr_t>(begin), bytes};
}

/// By the device if we may open it, else by the system call.
int make_descriptor() {
  if (const auto device = ::open("/dev/userfaultfd", O_RDWR | O_CLOEXEC); device >= 0) {
    const auto made = ioctl(device, USERFAULTFD_IOC_NEW, flags);
    close(device);
    if (made >= 0)
      return made;
  }
  return static_cast<int>(syscall(SYS_userfaultfd, flags));
}

/// A descriptor takes one handshake: whether a feature is there shows by asking for it.
int with_features(std::uint64_t features) {
  const auto descriptor = make_descriptor();
  if (descriptor < 0)
    return -1;
  uffdio_api api{UFFD_API, features, 0};
  if (ioctl(descriptor, UFFDIO_API, &api) == 0)
    return descriptor;
  const auto why = errno;
  close(descriptor);
  errno = why;
  return -1;
}

} // namespace

result<write_watch> write_watch::open() {
  auto unpopulated = true;
  auto descriptor = with_features(UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_UNPOPULATED);
  if (descriptor < 0 && errno == EINVAL) {
    unpopulated = false;
    descriptor = with_features(UFFD_FEATURE_PAGEFAULT_FLAG_WP);
  }
  if (descriptor < 0)
    return failure(
        errc::refused,
        fmt::format(
            "memory cannot be watched for writes here: userfaultfd: {} (it needs CAP_SYS_PTRACE, "
            "or access to /dev/userfaultfd, or vm.unprivileged_userfaultfd=1)",
            std::strerror(errno)));
  const auto stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  write_watch made(descriptor, stop, unpopulated);
  if (stop < 0)
    return failure(
        errc::refused,
        fmt::format("memory cannot be watched for writes here: eventfd: {}", std::strerror(errno)));
  return made;
}

write_watch::write_watch(write_watch&& other) noexcept
    : faults_(std::exchange(other.faults_, -1)), stop_(std::exchange(other.stop_, -1)),
      unpopulated_(other.unpopulated_) {}

write_watch& write_watch::operator=(write_watch&& other) noexcept {
  std::swap(faults_, other.faults_);
  std::swap(stop_, other.stop_);
  std::swap(unpopulated_, other.unpopulated_);
  return *this;
}

write_watch::~write_watch() {
  if (faults_ >= 0)
    close(faults_); // whatever is still protected is no more
  if (stop_ >= 0)
    close(stop_);
}

/// Memory stays enrolled as long as it is mapped, so that the next save has less to do.
result<void> write_watch::enroll(char* begin, std::uint64_t bytes) {
  uffdio_register enrolled{range_of(begin, bytes), UFFDIO_REGISTER_MODE_WP, 0};
  if (ioctl(faults_, UFFDIO_REGISTER, &enrolled) != 0)
    return failure(errc::refused, fmt::format("this memory cannot be watched for writes: {}",
                                              std::strerror(errno)));
  // A page that is not there yet would be made by the first write, without a word.
  if (!unpopulated_ && madvise(begin, bytes, MADV_POPULATE_READ) != 0)
    return failure(errc::refused, fmt::format("this memory cannot be watched for writes: {}",
                                              std::strerror(errno)));
  return {};
}

result<void> write_watch::protect(char* begin, std::uint64_t bytes) {
  uffdio_writeprotect wish{range_of(begin, bytes), UFFDIO_WRITEPROTECT_MODE_WP};
  for (auto enrolled = false;;) {
    if (ioctl(faults_, UFFDIO_WRITEPROTECT, &wish) == 0)
      return {};
    if (errno == EAGAIN || errno == EINTR)
      continue;
    const auto why = errno;
    release(begin, bytes);
    if (why != ENOENT || enrolled)
      return failure(errc::refused, fmt::format("this memory cannot be watched for writes: {}",
                                                std::strerror(why)));
    if (const auto done = enroll(begin, bytes); !done)
      return done;
    enrolled = true;
  }
}

void write_watch::release(char* begin, std::uint64_t bytes) const {
  uffdio_writeprotect wish{range_of(begin, bytes), 0};
  while (ioctl(faults_, UFFDIO_WRITEPROTECT, &wish) != 0 && (errno == EAGAIN || errno == EINTR)) {
  }
  // For a write that began to wait between the two looks of an earlier release.
  auto where = range_of(begin, bytes);
  ioctl(faults_, UFFDIO_WAKE, &where);
}

void write_watch::run(const std::function<void(char*)>& told) const {
  for (;;) {
    std::array<pollfd, 2> both{{{faults_, POLLIN, 0}, {stop_, POLLIN, 0}}};
    if (poll(both.data(), both.size(), -1) < 0)
      continue; // a signal
    if (both[1].revents != 0)
      return;
    std::array<uffd_msg, 16> messages{};
    const auto read_bytes = ::read(faults_, messages.data(), sizeof messages);
    for (std::size_t i = 0;
         read_bytes > 0 && i < static_cast<std::size_t>(read_bytes) / sizeof(uffd_msg); ++i)
      if (messages[i].event == UFFD_EVENT_PAGEFAULT)
        told(reinterpret_cast<char*>(messages[i].arg.pagefault.address));
  }
}

void write_watch::stop() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(stop_, &one, sizeof one);
}

} // namespace troupe::os
