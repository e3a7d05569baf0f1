#include "trace/core/settings.hpp"

#include "trace/core/text.hpp"

#include <cstdlib>

namespace troupe::trace {

void settings_notes::add(std::string_view line) {
  if (count < lines.size())
    lines[count++].set(line);
}

void settings_notes::add(std::string_view name, std::string_view value, std::string_view what) {
  std::array<char, 256> memory{};
  text line(memory.data(), memory.size());
  line.add(name);
  line.add(std::string_view("="));
  line.add_escaped(first_of(value, 64));
  line.add(std::string_view(": "));
  line.add(what);
  add(line.written());
}

namespace {

using getter = const char* (*)(const char*);

/// Reads variables one by one and keeps what is wrong with them.
class reader {
 public:
  reader(getter value_of, settings_notes& notes) : value_of_(value_of), notes_(notes) {}

  std::string_view words(const char* name) const {
    const char* value = value_of_(name);
    return value ? std::string_view(value) : std::string_view();
  }
  /// The first that is set.
  std::string_view words(const char* name, const char* other) const {
    return words(name).empty() ? words(other) : words(name);
  }
  bool flag(const char* name, bool otherwise) const {
    const auto value = words(name);
    if (value.empty())
      return otherwise;
    for (const auto yes : {"1", "true", "True", "TRUE", "on", "yes"})
      if (value == yes)
        return true;
    for (const auto no : {"0", "false", "False", "FALSE", "off", "no"})
      if (value == no)
        return false;
    notes_.add(name, value, "is neither 0 nor 1; the default stays");
    return otherwise;
  }
  long number(const char* name, long otherwise, long least, long most) const {
    const auto value = words(name);
    if (value.empty())
      return otherwise;
    char* end = nullptr;
    const long number = std::strtol(value.data(), &end, 10);
    if (*end == '\0' && number >= least && number <= most)
      return number;
    notes_.add(name, value, "is no whole number in its range (docs/tracing.md); the default stays");
    return otherwise;
  }
  std::uint64_t seconds_ns(const char* name, std::uint64_t otherwise) const {
    const auto value = words(name);
    if (value.empty())
      return otherwise;
    char* end = nullptr;
    const double seconds = std::strtod(value.data(), &end);
    if (*end == '\0' && seconds >= 0.05 && seconds <= 1e7)
      return static_cast<std::uint64_t>(seconds * 1e9);
    notes_.add(name, value, "is no number of seconds from 0.05 to 10000000; the default stays");
    return otherwise;
  }

 private:
  getter value_of_;
  settings_notes& notes_;
};

/// xpu_timer's variables without a counterpart here.
constexpr std::array unsupported{
    "XPU_TIMER_HANG_KILL",
    "XPU_TIMER_LOCAL_UPDATE_INTERVAL",
    "XPU_TIMER_MM_BVAR_WINDOW_SIZE",
    "XPU_TIMER_COLL_BVAR_WINDOW_SIZE",
    "XPU_TIMER_DEREGISTER_TIME",
    "XPU_TIMER_BUCKETING_METRICS",
    "XPU_TIMER_MM_BUCKETING_COUNT",
    "XPU_TIMER_COMM_BUCKETING_COUNT",
    "XPU_TIMER_BASEPORT",
    "XPU_TIMER_PORT",
    "XPU_TIMER_DUMP_STACK_COUNT",
    "XPU_TIMER_ALL_DUMP_TIMELINE",
    "XPU_TIMER_SKIP_TP",
    "XPU_TIMER_TP_SIZE",
    "XPU_TIMER_HOST_TRACING_FUNC",
    "XPU_TIMER_EXIT_HOOK_PLUGIN",
    "XPU_TIMER_LOGGING_DIR",
    "XPU_TIMER_LOGGING_APPEND",
    "XPU_TIMER_DEVICE_NAME",
    "XPU_TIMER_DAEMON_PATH",
    "XPU_TIMER_CONFIG",
    "XPU_TIMER_SYMS_FILE",
};

/// They concern all ranks alike: one line, by one of them.
void name_unsupported(const reader& from, const settings& told, settings_notes& notes) {
  if (told.local_rank != 0)
    return;
  std::array<char, 256> memory{};
  text line(memory.data(), memory.size());
  line.add(std::string_view("not supported here and without effect:"));
  const auto empty = line.written().size();
  for (const char* name : unsupported)
    if (!from.words(name).empty() && line.written().size() < 200)
      line.add(" %s", name);
  if (line.written().size() > empty)
    notes.add(line.written());
}

void read_places(const reader& from, settings& told) {
  told.metrics_directory.set(from.words("TROUPE_TRACE_DIR"));
  told.timeline_directory.set(from.words("XPU_TIMER_TIMELINE_PATH", "TROUPE_TRACE_DIR"));
  told.job.set(from.words("TROUPE_JOB", "TORCHELASTIC_RUN_ID"));
  if (told.job.empty())
    told.job.set(from.words("ENV_ARGO_WORKFLOW_NAME"));
  told.pod_name.set(from.words("POD_NAME"));
  told.pod_address.set(from.words("POD_IP"));
}

} // namespace

settings read_settings(getter value_of, settings_notes& notes) {
  const reader from(value_of, notes);
  settings told;
  constexpr long ranks_max = 1'000'000'000;
  told.on = from.flag("TROUPE_TRACE", true);
  told.rank = static_cast<int>(from.number("RANK", 0, 0, ranks_max));
  told.local_rank = static_cast<int>(from.number("LOCAL_RANK", 0, 0, ranks_max));
  told.world_size = static_cast<int>(from.number("WORLD_SIZE", 1, 1, ranks_max));
  told.xpu_names = from.flag("TROUPE_TRACE_XPU_TIMER_NAMES", false);
  told.verbose = from.flag("XPU_TIMER_DEBUG_MODE", false);
  told.hang_timeout_ns = from.seconds_ns("XPU_TIMER_HANG_TIMEOUT", told.hang_timeout_ns);
  told.update_every_ns =
      from.seconds_ns("XPU_TIMER_PROMETHEUS_UPDATE_INTERVAL", told.update_every_ns);
  told.poll_every_ns =
      static_cast<std::uint64_t>(from.number("TROUPE_TRACE_POLL_US", limits::poll_ns / 1000, 10,
                                             limits::poll_slowest_ns / 1000)) *
      1000;
  told.timeline_count = static_cast<std::size_t>(
      from.number("XPU_TIMER_TIMELINE_TRACE_COUNT", static_cast<long>(told.timeline_count), 1,
                  static_cast<long>(limits::timeline_max)));
  const auto port = from.number("TROUPE_TRACE_PORT", 0, 1, 65535);
  if (port > 0 && port + told.local_rank <= 65535)
    told.port = static_cast<int>(port) + told.local_rank;
  static constexpr std::array<const char*, operation_classes> every{
      "", "TROUPE_TRACE_GEMM_EVERY", "TROUPE_TRACE_COPY_EVERY", "TROUPE_TRACE_LAUNCH_EVERY"};
  for (std::size_t at = 1; at < every.size(); ++at)
    told.every[at] =
        static_cast<std::uint32_t>(from.number(every[at], told.every[at], 0, 1'000'000'000));
  read_places(from, told);
  name_unsupported(from, told, notes);
  return told;
}

} // namespace troupe::trace
