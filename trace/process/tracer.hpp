#pragma once

#include "trace/core/communicators.hpp"
#include "trace/core/index_queue.hpp"
#include "trace/core/metrics.hpp"
#include "trace/core/operation.hpp"
#include "trace/core/settings.hpp"
#include "trace/core/stream_queues.hpp"
#include "trace/core/timeline.hpp"
#include "trace/process/bell.hpp"
#include "trace/process/cuda_driver.hpp"
#include "trace/process/event_pool.hpp"
#include "trace/process/mutex.hpp"
#include "trace/process/progress_page.hpp"

#include <array>
#include <atomic>
#include <cstdint>

namespace troupe::trace {

/// What there is in one process: it begins with the first call that is intercepted, and ends before
/// CUDA's libraries do. A process that makes no such call has no thread, no memory and no handler
/// of this library.
///
/// A call takes a pair of events, records one before and one after what the program launches, and
/// hands the pair to the poller. It takes no lock, allocates nothing and waits for nothing. The
/// poller (poller.cpp) finds out which are over, and measures; the reporter (reporter.cpp) writes
/// files and answers: a disk that hangs stops only that.
class tracer {
 public:
  // What calls use. Any thread.

  /// Begins with the first call. False: nothing is traced in this process, or not yet.
  bool on() {
    const auto now = phase_.load(std::memory_order_acquire);
    return now == phase::on || (now == phase::untouched && begin());
  }
  /// Counts the call. True: this one is to be timed.
  bool counted(operation_class what) {
    const auto at = static_cast<std::size_t>(what);
    const auto number = calls_[at].fetch_add(1, std::memory_order_relaxed);
    const auto every = settings_.every[at];
    return every != 0 && number % every == 0;
  }
  void failed(operation_class what) {
    failed_[static_cast<std::size_t>(what)].fetch_add(1, std::memory_order_relaxed);
  }
  void not_timed(untimed why) {
    untimed_[static_cast<std::size_t>(why)].fetch_add(1, std::memory_order_relaxed);
  }
  /// Takes a pair and records its first event. `event_pool::none`: the call is not timed, for a
  /// reason that was counted.
  std::uint32_t start(abi::cuda_stream stream, bool* capturing = nullptr);
  /// Records the second event and hands the pair over. False: it could not be recorded.
  bool finish(std::uint32_t call, const operation& what, abi::cuda_stream stream);
  /// The program's call failed: there is nothing to time.
  void drop(std::uint32_t call) { pool_.give_back(call); }

  communicators& all_communicators() { return communicators_; }
  progress_page& page() { return page_; }

  // What the library's own threads use.

  struct measured {
    mutex by;
    buckets all;
    timeline last;
    hang_rule hang;
    /// The call that hangs, and whether the device has begun it.
    std::uint32_t hung_call;
    bool hung_call_begun;
    /// Of the contexts' axes.
    std::array<std::int64_t, limits::contexts_max> offsets_ns;
    std::uint64_t queue_depth = 0, longest_wait_ns = 0;
  };
  measured& measurements() { return measured_; }
  const settings& told() const { return settings_; }
  const settings_notes& notes() const { return notes_; }
  event_pool& pool() { return pool_; }
  cuda_driver& driver() { return driver_; }
  index_queue<limits::pool_max>& handed_over() { return handed_over_; }
  bell& poller_bell() { return poller_bell_; }
  bool ending() const { return phase_.load(std::memory_order_acquire) == phase::off; }
  void timeline_written() { timelines_.fetch_add(1, std::memory_order_relaxed); }
  /// Precondition: the measurements are locked.
  trace_counts counts();

 private:
  enum class phase : std::uint32_t { untouched, beginning, on, off };

  bool begin();
  static void at_exit();
  static void in_forked_child();

  std::atomic<phase> phase_;
  std::array<std::atomic<std::uint64_t>, operation_classes> calls_, failed_;
  std::array<std::atomic<std::uint64_t>, untimed_reasons> untimed_;
  std::atomic<std::uint64_t> timelines_;
  bell poller_bell_;
  cuda_driver driver_;
  event_pool pool_;
  index_queue<limits::pool_max> handed_over_;
  communicators communicators_;
  progress_page page_;
  settings settings_;
  settings_notes notes_;
  measured measured_;
};

/// The one of this process. All zero is how everything in it begins, so nothing is constructed when
/// a program is loaded, and memory that is not used is never touched.
union tracer_memory {
  char zero;
  tracer own;
  constexpr tracer_memory() : zero(0) {}
};
extern tracer_memory memory_of_tracer;
inline tracer& the_tracer() {
  return memory_of_tracer.own;
}

/// Marks the thread as being within an intercepted call: what a library calls in turn belongs to
/// that call, and is neither counted nor timed again.
class within_call {
 public:
  within_call() : outermost_(depth_++ == 0) {}
  ~within_call() { --depth_; }
  within_call(const within_call&) = delete;
  within_call& operator=(const within_call&) = delete;
  bool outermost() const { return outermost_; }

 private:
  static inline thread_local int depth_ = 0;
  bool outermost_;
};

/// Calls, and times it if it is its turn. `describe` fills in what it is, and runs only then; the
/// result is the call's own: 0 is success in all three libraries.
template<class Call, class StreamOf, class Describe>
int traced(operation_class what, StreamOf&& stream_of, Call&& call, Describe&& describe) {
  const within_call inside;
  if (!inside.outermost() || !the_tracer().on())
    return call();
  if (!the_tracer().counted(what)) {
    const int result = call();
    if (result != 0)
      the_tracer().failed(what);
    return result;
  }
  const abi::cuda_stream stream = stream_of();
  const auto pair = the_tracer().start(stream);
  const int result = call();
  if (result != 0)
    the_tracer().failed(what);
  if (pair == event_pool::none)
    return result;
  if (result != 0) {
    the_tracer().drop(pair);
    return result;
  }
  operation done;
  done.what = what;
  describe(done);
  the_tracer().finish(pair, done, stream);
  return result;
}

} // namespace troupe::trace
