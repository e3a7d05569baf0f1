#include "trace/process/tracer.hpp"

#include "trace/process/threads.hpp"

#include <cstdlib>

#include <pthread.h>

namespace troupe::trace {

tracer_memory memory_of_tracer;

bool tracer::begin() {
  auto expected = phase::untouched;
  // Calls of other threads pass untraced until this one is done.
  if (!phase_.compare_exchange_strong(expected, phase::beginning))
    return expected == phase::on;
  settings_ =
      read_settings([](const char* name) -> const char* { return std::getenv(name); }, notes_);
  measured_.last.keep(settings_.timeline_count);
  measured_.hang = hang_rule(settings_.hang_timeout_ns);
  if (settings_.on && begin_threads()) {
    // CUDA's libraries are loaded, so what they do at the end comes after this.
    std::atexit(at_exit);
    pthread_atfork(nullptr, nullptr, in_forked_child);
    phase_.store(phase::on, std::memory_order_release);
    return true;
  }
  phase_.store(phase::off, std::memory_order_release);
  return false;
}

void tracer::at_exit() {
  // A forked child has no threads to end.
  if (the_tracer().phase_.exchange(phase::off) == phase::on)
    end_threads();
}

/// CUDA does not work in a forked child, and the library's threads are not there: calls pass.
void tracer::in_forked_child() {
  the_tracer().phase_.store(phase::off, std::memory_order_relaxed);
}

std::uint32_t tracer::start(abi::cuda_stream stream, bool* capturing) {
  const auto not_so = [&](untimed why) {
    not_timed(why);
    return event_pool::none;
  };
  if (!driver_.ready())
    return not_so(untimed::no_driver);
  const auto context = driver_.current();
  if (!context)
    return not_so(untimed::no_driver);
  if (driver_.capturing(stream)) {
    if (capturing)
      *capturing = true;
    return not_so(untimed::capturing);
  }
  bool wanted = false;
  const auto call = pool_.take(context, wanted);
  if (wanted)
    poller_bell_.ring();
  if (call == event_pool::none)
    return not_so(untimed::pool_empty);
  pool_.at(call).launched_ns = now_ns();
  if (driver_.record(pool_.at(call).start, stream) != abi::driver_success) {
    drop(call);
    return not_so(untimed::event_failed);
  }
  return call;
}

bool tracer::finish(std::uint32_t call, const operation& what, abi::cuda_stream stream) {
  timed_call& timed = pool_.at(call);
  if (driver_.record(timed.end, stream) != abi::driver_success) {
    drop(call);
    not_timed(untimed::event_failed);
    return false;
  }
  timed.what = what;
  timed.stream = stream;
  timed.now.store(timed_call::state::under_way, std::memory_order_release);
  handed_over_.push(call); // has room for all pairs there are
  poller_bell_.ring();
  return true;
}

trace_counts tracer::counts() {
  trace_counts now;
  for (std::size_t at = 0; at < operation_classes; ++at) {
    now.calls[at] = calls_[at].load(std::memory_order_relaxed);
    now.failed[at] = failed_[at].load(std::memory_order_relaxed);
  }
  for (std::size_t at = 0; at < untimed_reasons; ++at)
    now.untimed[at] = untimed_[at].load(std::memory_order_relaxed);
  now.pool_total = pool_.made();
  now.pool_used = pool_.used();
  now.queue_depth = measured_.queue_depth;
  now.longest_wait_ns = measured_.longest_wait_ns;
  now.timelines = timelines_.load(std::memory_order_relaxed);
  now.hung = measured_.hang.hung();
  now.hangs = measured_.hang.hangs();
  return now;
}

} // namespace troupe::trace
