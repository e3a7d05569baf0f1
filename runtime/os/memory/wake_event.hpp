#pragma once

#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <optional>

namespace troupe::os {

/// A wake-up event between processes (eventfd): many signals before one wait wake it once. A signal
/// is not lost if the waiter does not wait at that moment.
class wake_event {
 public:
  static result<wake_event> create();
  /// Takes the descriptor of one that another process has made.
  static result<wake_event> adopt(int descriptor);
  wake_event(wake_event&& other) noexcept;
  wake_event& operator=(wake_event&& other) noexcept;
  ~wake_event();

  void signal() const;
  int descriptor() const { return descriptor_; }

  /// Waits until one of them has been signalled since the last wait.
  static void wait(std::initializer_list<const wake_event*> any_of);

 private:
  explicit wake_event(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

/// Waits while a word in shared memory has this value; may return earlier. False: time is up.
bool wait_while(const std::atomic<std::uint32_t>& word, std::uint32_t value, duration within);
/// Wakes the threads that wait there, in any process.
void wake_all(const std::atomic<std::uint32_t>& word);

} // namespace troupe::os
