#pragma once

#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <optional>

namespace troupe::os {

/// A wake-up event between processes (eventfd): many rings before one wait wake it once. A ring is
/// not lost if the waiter does not wait at that moment.
class bell {
 public:
  static result<bell> create();
  /// Takes the descriptor of one that another process has made.
  static result<bell> adopt(int descriptor);
  bell(bell&& other) noexcept;
  bell& operator=(bell&& other) noexcept;
  ~bell();

  void ring() const;
  int descriptor() const { return descriptor_; }

  /// Waits until one of them has been rung since it was last heard.
  static void hear(std::initializer_list<const bell*> any_of);

 private:
  explicit bell(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

/// Waits while a word in shared memory has this value; may return earlier. False: time is up.
bool wait_while(const std::atomic<std::uint32_t>& word, std::uint32_t value, duration within);
/// Wakes the threads that wait there, in any process.
void wake_all(const std::atomic<std::uint32_t>& word);

} // namespace troupe::os
