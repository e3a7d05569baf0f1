#pragma once

#include "runtime/base/ids.hpp"
#include "runtime/ports/console.hpp"

#include <atomic>
#include <cstdint>
#include <memory>

namespace troupe::launch {

/// How much of each worker's output the console has shown: memory that forked processes share, so
/// that a supervisor goes on where the one before it was killed. A block that was written to the
/// console and not yet counted is shown again.
class shown_progress {
 public:
  shown_progress();

  /// Of one file; keeps the memory alive.
  std::shared_ptr<std::atomic<std::uint64_t>> of(local_rank local,
                                                 ports::console_stream stream) const;

 private:
  using counter = std::atomic<std::uint64_t>;
  static_assert(counter::is_always_lock_free, "it works between processes");
  std::shared_ptr<counter> counters_;
};

} // namespace troupe::launch
