#include "runtime/os/memory/wake_event.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace troupe::os {

result<wake_event> wake_event::create() {
  const auto descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (descriptor < 0)
    return failure(errc::refused, fmt::format("making an eventfd: {}", std::strerror(errno)));
  return wake_event(descriptor);
}

result<wake_event> wake_event::adopt(int descriptor) {
  if (fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0)
    return failure(errc::invalid, fmt::format("descriptor {} is not open", descriptor));
  return wake_event(descriptor);
}

wake_event::wake_event(wake_event&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

wake_event& wake_event::operator=(wake_event&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

wake_event::~wake_event() {
  if (descriptor_ >= 0)
    close(descriptor_);
}

void wake_event::signal() const {
  const std::uint64_t once = 1;
  // Full means that it was rung and not heard yet, which is as good.
  [[maybe_unused]] const auto written = write(descriptor_, &once, sizeof once);
}

void wake_event::wait(std::initializer_list<const wake_event*> any_of) {
  std::vector<pollfd> all;
  for (const auto* one : any_of)
    all.push_back({one->descriptor_, POLLIN, 0});
  while (poll(all.data(), all.size(), -1) < 0 && errno == EINTR) {
  }
  std::uint64_t rings = 0;
  for (const auto& one : all)
    if ((one.revents & POLLIN) != 0) [[maybe_unused]]
      const auto heard = read(one.fd, &rings, sizeof rings);
}

bool wait_while(const std::atomic<std::uint32_t>& word, std::uint32_t value, duration within) {
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(within);
  const timespec most{static_cast<std::time_t>(whole.count()),
                      static_cast<long>(std::chrono::nanoseconds(within - whole).count())};
  return syscall(SYS_futex, &word, FUTEX_WAIT, value, &most, nullptr, 0) == 0 || errno != ETIMEDOUT;
}

void wake_all(const std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

} // namespace troupe::os
