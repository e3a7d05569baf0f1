#include "trace/core/metrics.hpp"

#include <array>

namespace troupe::trace {

namespace {

/// xpu_timer calls a call small that moves 8192 bits or less.
constexpr std::uint64_t small_bytes = 1024;

void labels(text& into, const bucket& b, const settings& told) {
  const auto collective = b.what == operation_class::collective;
  into.add("{algorithm=\"\",dtype=\"%s\",operation=\"%s\",transport=\"\",level=\"%u\",small=\"%d\"",
           name_of(b.type),
           collective ? diag::name_of(static_cast<diag::collective>(b.kind)) : "matmul", b.level,
           collective && size_level_max(b.level) == small_bytes ? 1 : 0);
  into.add(std::string_view(",ip=\""));
  into.add_escaped(told.pod_address.view());
  into.add(std::string_view("\",job_name=\""));
  into.add_escaped(told.job.view());
  into.add(std::string_view("\",pod_name=\""));
  into.add_escaped(told.pod_name.view());
  into.add("\",rank=\"%d\",local_rank=\"%d\"}", told.rank, told.local_rank);
}

struct measure {
  const char* name;
  double (*of)(const bucket::recent& recent);
};

double microseconds(std::uint64_t ns) {
  return static_cast<double>(ns) / 1e3;
}

constexpr std::array<measure, 4> latencies{{
    {"AVG_LATENCY", [](const bucket::recent& r) { return microseconds(r.sum_ns / r.timed); }},
    {"MAX_LATENCY", [](const bucket::recent& r) { return microseconds(r.max_ns); }},
    {"P99_LATENCY", [](const bucket::recent& r) { return microseconds(r.p99_ns); }},
    {"MIN_LATENCY", [](const bucket::recent& r) { return microseconds(r.min_ns); }},
}};
/// Gbit/s, and TFLOP/s.
constexpr measure bandwidth{"BANDWIDTH",
                            [](const bucket::recent& r) { return r.work_per_second * 8 / 1e9; }};
constexpr measure flops{"FLOPS", [](const bucket::recent& r) { return r.work_per_second / 1e12; }};

void family_of(text& into, operation_class what, const char* prefix, const measure& one,
               const buckets& measured, const settings& told) {
  into.add("# TYPE %s_%s gauge\n", prefix, one.name);
  for (std::size_t at = 0; at < measured.size(); ++at) {
    const auto before = into.written().size();
    const bucket& b = measured.at(at);
    const auto recent = b.of_windows();
    if (b.what != what || recent.timed == 0)
      continue;
    into.add("%s_%s", prefix, one.name);
    labels(into, b, told);
    into.add(" %.9g\n", one.of(recent));
    if (into.full())
      return into.cut_to(before);
  }
}

void common(text& into, const settings& told, const char* name, double amount) {
  into.add("# TYPE XPU_TIMER_COMMON_%s gauge\nXPU_TIMER_COMMON_%s{ip=\"", name, name);
  into.add_escaped(told.pod_address.view());
  into.add(std::string_view("\",job_name=\""));
  into.add_escaped(told.job.view());
  into.add(std::string_view("\",pod_name=\""));
  into.add_escaped(told.pod_name.view());
  into.add("\",rank=\"%d\",local_rank=\"%d\"} %.9g\n", told.rank, told.local_rank, amount);
}

} // namespace

void render_xpu_metrics(text& into, const buckets& measured, const trace_counts& counts,
                        const settings& told) {
  common(into, told, "HANG", counts.hung ? 1 : 0);
  common(into, told, "POOL_QUEUE_SIZE", static_cast<double>(counts.pool_total - counts.pool_used));
  common(into, told, "WORK_QUEUE_SIZE", static_cast<double>(counts.queue_depth));
  common(into, told, "START_DUMP", static_cast<double>(counts.timelines));
  common(into, told, "END_DUMP", static_cast<double>(counts.timelines));
  for (const auto& one : latencies) {
    family_of(into, operation_class::collective, "XPU_TIMER_COLL_KERNEL", one, measured, told);
    family_of(into, operation_class::gemm, "XPU_TIMER_MM_KERNEL", one, measured, told);
  }
  family_of(into, operation_class::collective, "XPU_TIMER_COLL_KERNEL", bandwidth, measured, told);
  family_of(into, operation_class::gemm, "XPU_TIMER_MM_KERNEL", flops, measured, told);
}

} // namespace troupe::trace
