#include "trace/process/reporter.hpp"

#include "trace/process/files.hpp"
#include "trace/process/port.hpp"
#include "trace/process/threads.hpp"
#include "trace/process/tracer.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string_view>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

namespace troupe::trace {

namespace {

constexpr const char* request_name = "timeline.request";

std::atomic<bool> hang_begun;
int wake_event = -1;

/// Only this thread writes here, one text after the other.
std::array<char, limits::timeline_bytes_max> page_of_text;
std::array<timeline_event, limits::timeline_max + limits::pool_max> events;
static_assert(limits::metrics_bytes_max <= limits::timeline_bytes_max);

std::string_view metrics_text() {
  text into(page_of_text.data(), limits::metrics_bytes_max, 64);
  auto& tracer = the_tracer();
  auto& measured = tracer.measurements();
  const locked lock(measured.by);
  measured.all.turn(now_ns());
  if (!render_metrics(into, measured.all, tracer.counts(), tracer.told()))
    into.end_with("# more does not fit\n");
  return into.written();
}

/// PyTorch's kernels have no names here, as their symbols are private: a library, and where in it.
void name_of_function(text& into, const void* function) {
  Dl_info about{};
  if (dladdr(function, &about) == 0 || !about.dli_fname) {
    into.add("kernel %p", function);
    return;
  }
  const char* slash = std::strrchr(about.dli_fname, '/');
  into.add_escaped(about.dli_sname ? about.dli_sname : slash ? slash + 1 : about.dli_fname);
  if (!about.dli_sname)
    into.add("+0x%tx",
             static_cast<const char*>(function) - static_cast<const char*>(about.dli_fbase));
}

class reporter {
 public:
  void run();

 private:
  void begin();
  void look_for_requests();
  void serve();
  int wait();
  bool asked();
  void tell_hang();
  void wait_for_poller();
  void write_metrics();
  void write_timeline(const char* kind, const char* why);
  std::size_t copy_events(std::uint64_t now);

  tracer& tracer_ = the_tracer();
  const settings& told_ = tracer_.told();
  std::array<pollfd, 3> waits_{{{-1, POLLIN, 0}, {-1, POLLIN, 0}, {-1, POLLIN, 0}}};
  std::uint64_t metrics_due_ = 0, timeline_after_ = 0;
  bool refused_ = false, request_waits_ = false;
};

void reporter::begin() {
  for (std::size_t at = 0; at < tracer_.notes().count; ++at)
    tell(told_.rank, tracer_.notes().lines[at].view());
  waits_[0].fd = wake_event;
  for (const auto* directory : {&told_.metrics_directory, &told_.timeline_directory})
    if (!directory->empty() && !make_directory(directory->c_str())) {
      std::array<char, 700> line{};
      std::snprintf(line.data(), line.size(),
                    "%s cannot be made: %s; set TROUPE_TRACE_DIR or "
                    "XPU_TIMER_TIMELINE_PATH to a directory that can",
                    directory->c_str(), std::strerror(errno));
      tell(told_.rank, line.data());
    }
  look_for_requests();
  serve();
  metrics_due_ = now_ns() + told_.update_every_ns;
}

void reporter::look_for_requests() {
  if (told_.timeline_directory.empty())
    return;
  const int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (watch >= 0 &&
      inotify_add_watch(watch, told_.timeline_directory.c_str(),
                        IN_CREATE | IN_ATTRIB | IN_CLOSE_WRITE | IN_MOVED_TO | IN_ONLYDIR) >= 0) {
    waits_[1].fd = watch;
    return;
  }
  tell(told_.rank, "the directory of timelines cannot be watched (inotify): no timeline on "
                   "request; one is written when a hang begins");
  if (watch >= 0)
    close(watch);
}

void reporter::serve() {
  if (told_.port == 0)
    return;
  waits_[2].fd = listen_at(told_.port);
  if (waits_[2].fd >= 0)
    return;
  std::array<char, 256> line{};
  std::snprintf(line.data(), line.size(),
                "no metrics at 127.0.0.1:%d: %s; TROUPE_TRACE_PORT is "
                "the port of local rank 0",
                told_.port, std::strerror(errno));
  tell(told_.rank, line.data());
}

int reporter::wait() {
  auto due = request_waits_ ? timeline_after_ : 0;
  if (!told_.metrics_directory.empty())
    due = due == 0 ? metrics_due_ : std::min(due, metrics_due_);
  if (due == 0)
    return poll(waits_.data(), waits_.size(), -1);
  const auto now = now_ns();
  const auto ms = due > now ? (due - now) / 1'000'000 + 1 : 0;
  return poll(waits_.data(), waits_.size(), static_cast<int>(std::min<std::uint64_t>(ms, 1 << 30)));
}

/// Whether a request was among what has changed in the directory.
bool reporter::asked() {
  alignas(inotify_event) std::array<char, 4096> changes{};
  auto found = false;
  for (;;) {
    const auto bytes = read(waits_[1].fd, changes.data(), changes.size());
    if (bytes <= 0)
      return found;
    for (std::size_t at = 0; at < static_cast<std::size_t>(bytes);) {
      const auto* change = reinterpret_cast<const inotify_event*>(changes.data() + at);
      found = found || (change->len > 0 && std::strcmp(change->name, request_name) == 0);
      at += sizeof(inotify_event) + change->len;
    }
  }
}

void reporter::write_metrics() {
  if (told_.metrics_directory.empty())
    return;
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "troupe-trace-%05d.prom", told_.rank);
  const auto written = replace_file(told_.metrics_directory.c_str(), name.data(), metrics_text());
  if (!written && !refused_)
    tell(told_.rank, "metrics cannot be written to TROUPE_TRACE_DIR; trying on");
  refused_ = !written;
  metrics_due_ = now_ns() + told_.update_every_ns;
}

std::size_t reporter::copy_events(std::uint64_t now) {
  auto& measured = tracer_.measurements();
  const locked lock(measured.by);
  std::size_t count = 0;
  for (; count < measured.last.size(); ++count) {
    auto& event = events[count];
    event = measured.last.at(count);
    const auto offset = static_cast<std::uint64_t>(measured.offsets_ns[event.context]);
    event.began_ns += offset; // modulo 2^64: it may be negative
    event.ended_ns += offset;
  }
  for (std::uint32_t call = 0; call < tracer_.pool().made(); ++call) {
    const auto& timed = tracer_.pool().at(call);
    if (timed.now.load(std::memory_order_acquire) != timed_call::state::under_way)
      continue;
    auto& event = events[count++];
    event = {};
    event.what = timed.what;
    event.context = timed.context;
    event.stream = timed.stream;
    event.launched_ns = event.began_ns = timed.launched_ns;
    event.ended_ns = now;
    event.under_way = true;
  }
  return count;
}

void reporter::write_timeline(const char* kind, const char* why) {
  timespec epoch{};
  clock_gettime(CLOCK_REALTIME, &epoch);
  const auto now = now_ns();
  timeline_labels labels;
  labels.job = told_.job.view();
  labels.rank = told_.rank;
  labels.local_rank = told_.local_rank;
  labels.world_size = told_.world_size;
  labels.to_epoch_ns = static_cast<std::int64_t>(epoch.tv_sec) * 1'000'000'000 + epoch.tv_nsec -
                       static_cast<std::int64_t>(now);
  text into(page_of_text.data(), page_of_text.size(), 8);
  render_timeline(into, events.data(), copy_events(now), labels, why, name_of_function);
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "%05d-%05d.%s.json", told_.rank, told_.world_size, kind);
  if (replace_file(told_.timeline_directory.c_str(), name.data(), into.written()))
    tracer_.timeline_written();
  else
    tell(told_.rank, "a timeline cannot be written to XPU_TIMER_TIMELINE_PATH");
  timeline_after_ = now + limits::timeline_every_ns;
}

void reporter::tell_hang() {
  operation what;
  double seconds = 0;
  bool begun = false;
  {
    auto& measured = tracer_.measurements();
    const locked lock(measured.by);
    const auto& timed = tracer_.pool().at(measured.hung_call);
    if (timed.now.load(std::memory_order_acquire) != timed_call::state::under_way)
      return; // it has gone on
    what = timed.what;
    begun = measured.hung_call_begun;
    seconds = static_cast<double>(now_ns() - timed.launched_ns) / 1e9;
  }
  std::array<char, 512> memory{};
  text line(memory.data(), memory.size());
  line.add(std::string_view("the device stands still: "));
  if (what.what == operation_class::collective)
    line.add("%s #%" PRIu64 " of communicator nccl-%016" PRIx64 " (%u ranks, %" PRIu64 " bytes)",
             diag::name_of(what.collective()), what.sequence, what.communicator, what.members,
             what.bytes);
  else
    line.add("a %s", trace::name_of(what.what));
  line.add(" was launched %.1f s ago and %s", seconds,
           begun ? "is not over" : "has not begun: what was launched before it is not over");
  tell(told_.rank, line.written());
}

/// The last metrics have all measurements, unless the poller is held within CUDA.
void reporter::wait_for_poller() {
  const auto until = now_ns() + limits::end_within_ns / 2;
  waits_[1].fd = waits_[2].fd = -1;
  while (!poller_ended()) {
    const auto now = now_ns();
    if (now >= until)
      return;
    poll(waits_.data(), 1, static_cast<int>((until - now) / 1'000'000) + 1);
    std::uint64_t woken = 0;
    (void)!read(wake_event, &woken, sizeof woken);
  }
}

void reporter::run() {
  begin();
  while (!tracer_.ending()) {
    wait();
    std::uint64_t woken = 0;
    if ((waits_[0].revents & POLLIN) != 0)
      (void)!read(wake_event, &woken, sizeof woken);
    if (hang_begun.exchange(false)) {
      tell_hang();
      if (!told_.timeline_directory.empty())
        write_timeline("hang", "hang");
      write_metrics();
    }
    if ((waits_[1].revents & POLLIN) != 0 && asked())
      request_waits_ = true;
    if (request_waits_ && now_ns() >= timeline_after_) {
      request_waits_ = false;
      write_timeline("timeline", "request");
    }
    if ((waits_[2].revents & POLLIN) != 0)
      answer_one(waits_[2].fd, metrics_text);
    if (now_ns() >= metrics_due_)
      write_metrics();
  }
  wait_for_poller();
  write_metrics();
}

} // namespace

bool prepare_reporter() {
  wake_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return wake_event >= 0;
}

void run_reporter() {
  reporter here;
  here.run();
}

void wake_reporter() {
  const std::uint64_t one = 1;
  (void)!write(wake_event, &one, sizeof one);
}

void report_hang() {
  hang_begun.store(true);
  wake_reporter();
}

} // namespace troupe::trace
