#pragma once

#include "trace/core/buckets.hpp"
#include "trace/core/settings.hpp"
#include "trace/core/text.hpp"

#include <array>
#include <cstdint>

namespace troupe::trace {

/// Why a call was not timed.
enum class untimed : std::uint8_t {
  pool_empty,   ///< no pair of events was free
  capturing,    ///< its stream records a graph: events would become a part of it
  no_driver,    ///< libcuda or a context of the thread was not there
  event_failed, ///< an event could not be recorded
  not_enqueued, ///< NCCL works on it in the background: its place in the stream is not known
  no_place,     ///< more communicators or streams in a group than are told apart
};
inline constexpr std::size_t untimed_reasons = 6;
const char* name_of(untimed reason);

/// Counts of the library itself.
struct trace_counts {
  std::array<std::uint64_t, operation_classes> calls{};
  std::array<std::uint64_t, operation_classes>
      failed{}; ///< the program's own call returned an error
  std::array<std::uint64_t, untimed_reasons> untimed{};
  std::uint64_t queue_depth = 0, pool_total = 0, pool_used = 0;
  std::uint64_t longest_wait_ns = 0, hangs = 0, timelines = 0;
  bool hung = false;
};

/// Prometheus's text format. False: it did not fit; what there is, is whole lines.
bool render_metrics(text& into, const buckets& measured, const trace_counts& counts,
                    const settings& told);

/// The names that xpu_timer's dashboards read.
void render_xpu_metrics(text& into, const buckets& measured, const trace_counts& counts,
                        const settings& told);

} // namespace troupe::trace
