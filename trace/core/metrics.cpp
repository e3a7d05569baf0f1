#include "trace/core/metrics.hpp"

#include <cinttypes>

namespace troupe::trace {

const char* name_of(untimed reason) {
  static constexpr std::array names{"pool_empty",   "capturing",    "no_driver",
                                    "event_failed", "not_enqueued", "no_place"};
  static_assert(names.size() == untimed_reasons);
  return names[static_cast<std::size_t>(reason)];
}

namespace {

double seconds(std::uint64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

void head(text& into, const char* name, const char* type, const char* help) {
  into.add("# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void process_labels(text& into, const settings& told) {
  into.add(std::string_view("{job_name=\""));
  into.add_escaped(told.job.view());
  into.add("\",rank=\"%d\",local_rank=\"%d\"", told.rank, told.local_rank);
}

/// One value of the process as a whole.
void value(text& into, const settings& told, const char* name, double amount) {
  into.add(std::string_view(name));
  process_labels(into, told);
  into.add("} %.9g\n", amount);
}

void count_by(text& into, const settings& told, const char* name, const char* label,
              const char* which, std::uint64_t count) {
  into.add(std::string_view(name));
  process_labels(into, told);
  into.add(",%s=\"%s\"} %" PRIu64 "\n", label, which, count);
}

void level_label(text& into, const char* name, std::uint64_t most) {
  if (most > 0)
    into.add(",%s=\"%" PRIu64 "\"", name, most);
  else
    into.add(",%s=\"+Inf\"", name);
}

void bucket_labels(text& into, const bucket& b, const settings& told) {
  process_labels(into, told);
  switch (b.what) {
  case operation_class::collective:
    into.add(",operation=\"%s\",members=\"%u\",dtype=\"%s\"",
             diag::name_of(static_cast<diag::collective>(b.kind)), b.members, name_of(b.type));
    level_label(into, "bytes_max", size_level_max(b.level));
    break;
  case operation_class::gemm:
    into.add(",dtype=\"%s\"", name_of(b.type));
    level_label(into, "flop_max", flop_level_max(b.level));
    break;
  case operation_class::copy:
    into.add(",direction=\"%s\"", name_of(static_cast<copy_kind>(b.kind)));
    level_label(into, "bytes_max", size_level_max(b.level));
    break;
  case operation_class::launch:
    break;
  }
}

struct family {
  operation_class what;
  const char* latency;
  const char* latency_help;
  const char* speed; ///< null: none
  const char* speed_help;
  const char* bytes; ///< null: none
  const char* bytes_help;
};

constexpr std::array<family, operation_classes> families{{
    {operation_class::collective, "troupe_collective_latency_seconds",
     "Time of NCCL's calls on the device; quantiles are of the last one to two minutes.",
     "troupe_collective_bus_bandwidth_bytes_per_second",
     "Bus bandwidth as nccl-tests reckons it, over the last one to two minutes.",
     "troupe_collective_bytes_total", "Bytes of the timed calls, by the size nccl-tests prints."},
    {operation_class::gemm, "troupe_gemm_latency_seconds",
     "Time of the sampled matrix products on the device.", "troupe_gemm_flop_per_second",
     "2 m n k batch over time, over the last one to two minutes.", nullptr, nullptr},
    {operation_class::copy, "troupe_copy_latency_seconds",
     "Time of the sampled copies and fills on the device.", "troupe_copy_bytes_per_second",
     "Speed of the sampled copies, over the last one to two minutes.", nullptr, nullptr},
    {operation_class::launch, "troupe_kernel_latency_seconds",
     "Time of the sampled kernels on the device.", nullptr, nullptr, nullptr, nullptr},
}};

/// Calls `line` for each set of labels of the class that is warm. A line that does not fit is left
/// out whole.
template<class Line>
void for_each_of(text& into, operation_class what, const buckets& measured, Line&& line) {
  for (std::size_t at = 0; at < measured.size(); ++at) {
    const auto before = into.written().size();
    if (measured.at(at).what == what && measured.at(at).timed > 0)
      line(measured.at(at));
    if (into.full()) {
      into.cut_to(before);
      return;
    }
  }
}

void latencies(text& into, const bucket& b, const char* name, const settings& told) {
  const auto recent = b.of_windows();
  const auto quantile = [&](const char* which, std::uint64_t ns) {
    into.add(std::string_view(name));
    bucket_labels(into, b, told);
    if (recent.timed > 0)
      into.add(",quantile=\"%s\"} %.9g\n", which, seconds(ns));
    else
      into.add(",quantile=\"%s\"} NaN\n", which);
  };
  quantile("0", recent.min_ns);
  quantile("0.99", recent.p99_ns);
  quantile("1", recent.max_ns);
  into.add("%s_sum", name);
  bucket_labels(into, b, told);
  into.add("} %.9g\n%s_count", seconds(b.sum_ns), name);
  bucket_labels(into, b, told);
  into.add("} %" PRIu64 "\n", b.timed);
}

void render_family(text& into, const family& f, const buckets& measured, const settings& told) {
  head(into, f.latency, "summary", f.latency_help);
  for_each_of(into, f.what, measured,
              [&](const bucket& b) { latencies(into, b, f.latency, told); });
  if (f.speed) {
    head(into, f.speed, "gauge", f.speed_help);
    for_each_of(into, f.what, measured, [&](const bucket& b) {
      into.add(std::string_view(f.speed));
      bucket_labels(into, b, told);
      into.add("} %.9g\n", b.of_windows().work_per_second);
    });
  }
  if (f.bytes) {
    head(into, f.bytes, "counter", f.bytes_help);
    for_each_of(into, f.what, measured, [&](const bucket& b) {
      into.add(std::string_view(f.bytes));
      bucket_labels(into, b, told);
      into.add("} %" PRIu64 "\n", b.bytes);
    });
  }
}

void render_counts(text& into, const trace_counts& counts, const settings& told) {
  head(into, "troupe_trace_calls_total", "counter", "Intercepted calls, by class.");
  for (std::size_t at = 0; at < operation_classes; ++at)
    count_by(into, told, "troupe_trace_calls_total", "class",
             name_of(static_cast<operation_class>(at)), counts.calls[at]);
  head(into, "troupe_trace_failed_calls_total", "counter",
       "Calls that CUDA, NCCL or cuBLAS answered with an error.");
  for (std::size_t at = 0; at < operation_classes; ++at)
    count_by(into, told, "troupe_trace_failed_calls_total", "class",
             name_of(static_cast<operation_class>(at)), counts.failed[at]);
  head(into, "troupe_trace_untimed_total", "counter", "Calls that were to be timed and were not.");
  for (std::size_t at = 0; at < untimed_reasons; ++at)
    count_by(into, told, "troupe_trace_untimed_total", "reason", name_of(static_cast<untimed>(at)),
             counts.untimed[at]);
}

struct gauge_row {
  const char* name;
  const char* type;
  const char* help;
  double amount;
};

void render_gauges(text& into, const trace_counts& counts, const buckets& measured,
                   const settings& told) {
  const gauge_row rows[] = {
      {"troupe_trace_hang", "gauge", "1 while a stream's oldest call is not over within the limit.",
       counts.hung ? 1.0 : 0.0},
      {"troupe_trace_hangs_total", "counter", "How often that began.",
       static_cast<double>(counts.hangs)},
      {"troupe_trace_longest_wait_seconds", "gauge",
       "How long the call that is waited for longest has been the oldest of its stream.",
       seconds(counts.longest_wait_ns)},
      {"troupe_trace_queue_depth", "gauge", "Timed calls that are not over.",
       static_cast<double>(counts.queue_depth)},
      {"troupe_trace_pool_pairs", "gauge", "Pairs of CUDA events that were made.",
       static_cast<double>(counts.pool_total)},
      {"troupe_trace_pool_pairs_used", "gauge", "Pairs of CUDA events in use.",
       static_cast<double>(counts.pool_used)},
      {"troupe_trace_timelines_total", "counter", "Timelines that were written.",
       static_cast<double>(counts.timelines)},
      {"troupe_trace_buckets_full_total", "counter",
       "Measurements without a set of labels, as there are too many.",
       static_cast<double>(measured.without_place())},
  };
  for (const auto& row : rows) {
    head(into, row.name, row.type, row.help);
    value(into, told, row.name, row.amount);
  }
}

} // namespace

bool render_metrics(text& into, const buckets& measured, const trace_counts& counts,
                    const settings& told) {
  // What is always there comes first: a text that is full lacks only sets of labels.
  render_gauges(into, counts, measured, told);
  render_counts(into, counts, told);
  for (const auto& f : families)
    render_family(into, f, measured, told);
  if (told.xpu_names)
    render_xpu_metrics(into, measured, counts, told);
  return !into.full();
}

} // namespace troupe::trace
