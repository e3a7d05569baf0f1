#pragma once

#include "trace/core/index_queue.hpp"
#include "trace/core/operation.hpp"
#include "trace/limits.hpp"
#include "trace/process/cuda_driver.hpp"

#include <array>
#include <atomic>
#include <cstdint>

namespace troupe::trace {

/// A call that is being timed, and its two events.
struct timed_call {
  enum class state : std::uint8_t { free, under_way };

  operation what;
  abi::cuda_stream stream = nullptr;
  std::uint64_t launched_ns = 0;
  std::uint32_t context = 0;
  abi::driver_event start = nullptr, end = nullptr; ///< once made, they stay
  std::atomic<state> now{state::free};
};

/// Pairs of CUDA events, for as many calls as are timed at once.
///
/// To make an event takes the driver's locks and may take long, so a call never does: the library's
/// own thread makes them, in blocks, for contexts that ask. A call that finds no pair is not timed.
/// An event belongs to a context, hence the pairs are kept by context.
class event_pool {
 public:
  static constexpr std::uint32_t none = limits::pool_max;

  // Any thread.

  /// `none`: there is no free pair for this context now. `wanted` becomes true where the poller
  /// ought to make some and does not know.
  std::uint32_t take(abi::driver_context context, bool& wanted);
  void give_back(std::uint32_t call);
  timed_call& at(std::uint32_t call) { return calls_[call]; }
  std::uint64_t made() const { return made_.load(std::memory_order_relaxed); }
  std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  abi::driver_context context(std::uint32_t index) const {
    return contexts_[index].handle.load(std::memory_order_acquire);
  }

  bool any_wanted() const;

  // The poller.

  /// Makes a block for each context that wants one. Makes their contexts current.
  void make_wanted(const cuda_driver& driver);

 private:
  struct of_context {
    std::atomic<abi::driver_context> handle;
    std::atomic<bool> wanted;
    std::atomic<bool> broken; ///< an event could not be made in it
    index_queue<limits::pool_max> free;
  };
  of_context* find_or_add(abi::driver_context context);
  bool make_pair(const cuda_driver& driver, std::uint32_t index);

  std::array<timed_call, limits::pool_max> calls_;
  std::array<of_context, limits::contexts_max> contexts_;
  std::atomic<std::uint64_t> made_, used_;
};

} // namespace troupe::trace
