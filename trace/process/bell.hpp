#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace troupe::trace {

inline std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

/// Wakes one thread that sleeps. To ring costs a system call only when it does sleep.
///
/// The sleeper announces its sleep, looks once more for what it may have missed, and sleeps if
/// there was nothing; one that rings between sees the announcement.
class bell {
 public:
  void ring() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (sleeping_.load(std::memory_order_relaxed) != 0 && sleeping_.exchange(0) != 0)
      syscall(SYS_futex, word(), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
  /// Before the last look.
  void announce() {
    sleeping_.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  /// Returns when it was rung since `announce`, when the time is over, or for no reason. 0: without
  /// limit.
  void sleep(std::uint64_t within_ns) {
    timespec within{static_cast<time_t>(within_ns / 1'000'000'000),
                    static_cast<long>(within_ns % 1'000'000'000)};
    syscall(SYS_futex, word(), FUTEX_WAIT_PRIVATE, 1, within_ns == 0 ? nullptr : &within, nullptr,
            0);
    sleeping_.store(0, std::memory_order_relaxed);
  }
  /// The last look found something.
  void stay_awake() { sleeping_.store(0, std::memory_order_relaxed); }

 private:
  std::uint32_t* word() { return reinterpret_cast<std::uint32_t*>(&sleeping_); }

  std::atomic<std::uint32_t> sleeping_;
  static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));
};

} // namespace troupe::trace
