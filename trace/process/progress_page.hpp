#pragma once

#include "diag/progress/page.hpp"

#include <atomic>
#include <cstdint>

namespace troupe::trace {

/// The page in which the process says how far it is, written by the library of training processes
/// (worker/troupe_worker.h) where a script has loaded it. Without that library nothing is said.
class progress_page {
 public:
  /// Looks for the library. Takes the loader's lock: for calls that are rare.
  void look();
  bool found() const { return enter_.load(std::memory_order_acquire) != nullptr; }

  /// Its row plus 1; 0: there is none. `world` are all ranks of the job: if the communicator has as
  /// many members, they are known by their numbers.
  std::uint32_t row_of(std::uint64_t name, std::uint32_t members, std::uint32_t world) const;
  /// `row` as `row_of` returned it; 0: nothing happens.
  void entered(std::uint32_t row, diag::collective kind, std::uint64_t bytes) const;
  void left(std::uint32_t row) const;

 private:
  using communicator_function = std::int32_t(const char*, const std::uint32_t*, std::size_t);
  using enter_function = void(std::int32_t, std::uint32_t, std::uint64_t);
  using leave_function = void(std::int32_t);
  using feeds_function = void(std::uint64_t);

  std::atomic<communicator_function*> communicator_;
  std::atomic<leave_function*> leave_;
  /// Stored last.
  std::atomic<enter_function*> enter_;
};

} // namespace troupe::trace
