#pragma once

#include <atomic>

namespace troupe {

/// A place in the code to which only rare events lead: messages that cross, a loss at a bad moment.
///
/// All marks of a program are in one list before main() begins. So a test knows also of those that
/// it has not reached, and can fail for them (tests/sim/swarm --demand-marks). No decision reads a
/// mark.
class rare_mark {
 public:
  explicit rare_mark(const char* what) noexcept : what_(what), next_(first_) { first_ = this; }
  rare_mark(const rare_mark&) = delete;
  rare_mark& operator=(const rare_mark&) = delete;

  /// One store, as the product runs this as well: no count, no lock, no memory.
  void reach() noexcept { reached_.store(true, std::memory_order_relaxed); }
  void forget() noexcept { reached_.store(false, std::memory_order_relaxed); }
  bool reached() const noexcept { return reached_.load(std::memory_order_relaxed); }
  const char* what() const noexcept { return what_; }

  /// The list, in no order that means anything.
  static rare_mark* first() noexcept { return first_; }
  rare_mark* next() const noexcept { return next_; }

 private:
  // Constant: it is there before the first mark of any file puts itself in.
  static inline rare_mark* first_ = nullptr;

  const char* what_;
  rare_mark* next_;
  std::atomic<bool> reached_{false};
};

namespace detail {

/// One mark for each type, and each place has a type of its own.
template<class Place>
struct rare_mark_of {
  static inline rare_mark mark{Place::what()};
};

} // namespace detail
} // namespace troupe

/// Marks this place, for the cases in which `condition` holds. `text` is "component: what happens".
#define TROUPE_RARE_IF(condition, text)                                                            \
  do {                                                                                             \
    struct place {                                                                                 \
      static constexpr const char* what() { return text; }                                         \
    };                                                                                             \
    if (condition)                                                                                 \
      ::troupe::detail::rare_mark_of<place>::mark.reach();                                         \
  } while (false)

#define TROUPE_RARE(text) TROUPE_RARE_IF(true, text)
