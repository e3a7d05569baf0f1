#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace troupe::trace {

/// Small numbers in order of arrival, from any threads to any threads. Neither side waits for the
/// other, takes a lock or allocates: it is used within calls that launch work on a device.
///
/// Each cell has a turn that says which push or pop it is ready for (D. Vyukov's bounded queue).
/// Turns are stored less the cell's own index, so that all zero is an empty queue: one that is
/// never used costs no memory.
template<std::size_t Capacity>
class index_queue {
  static_assert(Capacity > 1 && (Capacity & (Capacity - 1)) == 0);

 public:
  /// False: it is full.
  bool push(std::uint32_t value) {
    auto at = pushed_.load(std::memory_order_relaxed);
    for (;;) {
      cell& c = cells_[at % Capacity];
      const auto turn = c.turn.load(std::memory_order_acquire) + at % Capacity;
      if (turn == at) {
        if (!pushed_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed))
          continue;
        c.value = value;
        c.turn.store(at + 1 - at % Capacity, std::memory_order_release);
        return true;
      }
      if (static_cast<std::int64_t>(turn - at) < 0)
        return false;
      at = pushed_.load(std::memory_order_relaxed);
    }
  }

  /// False: it is empty.
  bool pop(std::uint32_t& value) {
    auto at = popped_.load(std::memory_order_relaxed);
    for (;;) {
      cell& c = cells_[at % Capacity];
      const auto turn = c.turn.load(std::memory_order_acquire) + at % Capacity;
      if (turn == at + 1) {
        if (!popped_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed))
          continue;
        value = c.value;
        c.turn.store(at + Capacity - at % Capacity, std::memory_order_release);
        return true;
      }
      if (static_cast<std::int64_t>(turn - at - 1) < 0)
        return false;
      at = popped_.load(std::memory_order_relaxed);
    }
  }

  /// About how many there are.
  std::size_t size() const {
    const auto popped = popped_.load(std::memory_order_relaxed);
    const auto pushed = pushed_.load(std::memory_order_relaxed);
    return pushed > popped ? static_cast<std::size_t>(pushed - popped) : 0;
  }

 private:
  struct cell {
    std::atomic<std::uint64_t> turn;
    std::uint32_t value;
  };
  alignas(64) std::atomic<std::uint64_t> pushed_;
  alignas(64) std::atomic<std::uint64_t> popped_;
  alignas(64) std::array<cell, Capacity> cells_;
};

} // namespace troupe::trace
