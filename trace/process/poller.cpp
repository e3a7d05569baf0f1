#include "trace/process/poller.hpp"

#include "trace/core/stream_queues.hpp"
#include "trace/process/reporter.hpp"
#include "trace/process/tracer.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace troupe::trace {

namespace {

/// CUDA tells distances as a `float` of milliseconds: beyond a second it gets coarse.
constexpr std::int64_t anchor_for_ns = 1'000'000'000;

/// In memory that begins as zero.
stream_queues under_way;

/// Of each context: its time axis, and the call whose first event is the axis' anchor.
struct axis_of_context {
  device_axis axis;
  std::uint32_t anchor = 0;
};
std::array<axis_of_context, limits::contexts_max> axes;

class poller {
 public:
  void run();

 private:
  void take_over(std::uint64_t now);
  void look(std::size_t stream, std::uint64_t now);
  bool look_at_oldest(std::size_t stream);
  void over(std::uint32_t call, std::uint64_t now);
  std::uint64_t place(std::uint32_t call, std::uint64_t duration_ns, std::uint64_t now);
  void release(std::uint32_t call);
  void remember(std::uint64_t now);
  void rest(std::uint64_t now);
  bool make_current(std::uint32_t context);

  tracer& tracer_ = the_tracer();
  const cuda_driver& driver_ = tracer_.driver();
  std::uint32_t current_ = limits::contexts_max;
  std::uint64_t busy_until_ = 0;
  bool exempt_ = false;
};

void poller::run() {
  while (!tracer_.ending()) {
    const auto now = now_ns();
    if (tracer_.driver().ready()) {
      if (!exempt_)
        driver_.exempt_this_thread_from_captures();
      exempt_ = true;
      tracer_.pool().make_wanted(driver_);
      current_ = limits::contexts_max;
      take_over(now);
      for (std::size_t stream = 0; stream < under_way.streams(); ++stream)
        look(stream, now);
    }
    remember(now);
    rest(now);
  }
}

void poller::take_over(std::uint64_t now) {
  std::uint32_t call = 0;
  while (tracer_.handed_over().pop(call)) {
    busy_until_ = now + limits::linger_ns;
    const auto& timed = tracer_.pool().at(call);
    under_way.add(call, tracer_.pool().context(timed.context), timed.stream, timed.launched_ns);
  }
}

void poller::look(std::size_t stream, std::uint64_t now) {
  while (under_way.at(stream).calls > 0 && look_at_oldest(stream))
    under_way.remove_oldest(stream, now);
}

bool poller::make_current(std::uint32_t context) {
  // The driver may create what it needs in the context that is current, and device 0's would be
  // another rank's: never ask without the event's own.
  if (context != current_ &&
      driver_.make_current(tracer_.pool().context(context)) != abi::driver_success)
    return false;
  current_ = context;
  return true;
}

/// True: it is over, one way or the other.
bool poller::look_at_oldest(std::size_t stream) {
  const auto call = under_way.at(stream).oldest;
  const auto& timed = tracer_.pool().at(call);
  const auto answer =
      make_current(timed.context) ? driver_.query(timed.end) : abi::driver_not_ready + 1;
  if (answer == abi::driver_not_ready)
    return false;
  if (answer == abi::driver_success) {
    over(call, now_ns());
  } else {
    tracer_.not_timed(untimed::event_failed);
    release(call);
  }
  return true;
}

std::uint64_t poller::place(std::uint32_t call, std::uint64_t duration_ns, std::uint64_t now) {
  const auto& timed = tracer_.pool().at(call);
  auto& [axis, anchor] = axes[timed.context];
  float ms = 0;
  if (axis.begun() &&
      driver_.elapsed(ms, tracer_.pool().at(anchor).start, timed.start) != abi::driver_success) {
    axis.forget();
    tracer_.pool().give_back(anchor);
  }
  const auto first = !axis.begun();
  const auto from_anchor = static_cast<std::int64_t>(static_cast<double>(ms) * 1e6);
  const auto began = axis.place(from_anchor, duration_ns, now);
  if (first) {
    anchor = call;
  } else if (std::abs(from_anchor) > anchor_for_ns) {
    tracer_.pool().give_back(anchor);
    anchor = call;
    axis.move_anchor();
  }
  return began;
}

void poller::over(std::uint32_t call, std::uint64_t now) {
  const auto& timed = tracer_.pool().at(call);
  float ms = 0;
  if (driver_.elapsed(ms, timed.start, timed.end) != abi::driver_success) {
    tracer_.not_timed(untimed::event_failed);
    return release(call);
  }
  const auto duration = static_cast<std::uint64_t>(std::max(0.0, static_cast<double>(ms) * 1e6));
  timeline_event event;
  event.what = timed.what;
  event.context = timed.context;
  event.stream = timed.stream;
  event.launched_ns = timed.launched_ns;
  event.began_ns = place(call, duration, now);
  event.ended_ns = event.began_ns + duration;
  {
    auto& measured = tracer_.measurements();
    const locked lock(measured.by);
    measured.all.add(timed.what, duration, now);
    measured.last.add(event);
    measured.offsets_ns[timed.context] = axes[timed.context].axis.offset_ns();
  }
  release(call);
}

/// The call is over, or its events are of no use.
void poller::release(std::uint32_t call) {
  auto& timed = tracer_.pool().at(call);
  if (timed.what.what == operation_class::collective)
    tracer_.page().left(timed.what.page_row);
  {
    // A reader that holds the lock sees each call either under way or not.
    const locked lock(tracer_.measurements().by);
    timed.now.store(timed_call::state::free, std::memory_order_relaxed);
  }
  auto& [axis, anchor] = axes[timed.context];
  if (!axis.begun() || anchor != call)
    tracer_.pool().give_back(call);
}

void poller::remember(std::uint64_t now) {
  auto& measured = tracer_.measurements();
  const auto wait = under_way.longest_wait_ns(now);
  bool began = false;
  {
    const locked lock(measured.by);
    measured.queue_depth = under_way.calls();
    measured.longest_wait_ns = wait;
    began = measured.hang.look(wait);
    if (began) {
      measured.hung_call = under_way.longest_waited_for();
      const auto& timed = tracer_.pool().at(measured.hung_call);
      measured.hung_call_begun =
          make_current(timed.context) && driver_.query(timed.start) == abi::driver_success;
    }
  }
  if (began)
    report_hang();
}

void poller::rest(std::uint64_t now) {
  if (under_way.calls() > 0)
    busy_until_ = now + limits::linger_ns;
  auto& bell = tracer_.poller_bell();
  if (tracer_.pool().any_wanted())
    return;
  if (now < busy_until_) {
    // Nothing is announced: a call need not wake a thread that looks again at once.
    const auto aged = under_way.longest_wait_ns(now) / 64;
    const auto pause = std::clamp(aged, tracer_.told().poll_every_ns, limits::poll_slowest_ns);
    const timespec period{0, static_cast<long>(pause)};
    nanosleep(&period, nullptr);
    return;
  }
  bell.announce();
  if (tracer_.handed_over().size() > 0 || tracer_.pool().any_wanted() || tracer_.ending())
    bell.stay_awake();
  else
    bell.sleep(0);
}

} // namespace

void run_poller() {
  poller here;
  here.run();
}

} // namespace troupe::trace
