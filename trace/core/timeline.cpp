#include "trace/core/timeline.hpp"

#include <algorithm>
#include <cinttypes>

namespace troupe::trace {

void timeline::keep(std::size_t count) {
  kept_ = std::min(count, limits::timeline_max);
}

void timeline::add(const timeline_event& event) {
  if (kept_ > 0)
    events_[added_++ % kept_] = event;
}

const timeline_event& timeline::at(std::size_t index) const {
  return events_[added_ < kept_ ? index : (added_ + index) % kept_];
}

std::uint64_t device_axis::place(std::int64_t from_anchor_ns, std::uint64_t duration_ns,
                                 std::uint64_t seen_ns) {
  if (!begun_) {
    anchor_ns_ = last_ns_ = seen_ns - std::min(seen_ns, duration_ns);
    offset_ns_ = 0;
    seen_ns_ = seen_ns;
    begun_ = true;
    return last_ns_;
  }
  const auto begin = static_cast<std::int64_t>(anchor_ns_) + from_anchor_ns;
  last_ns_ = static_cast<std::uint64_t>(std::max<std::int64_t>(begin, 0));
  constexpr std::int64_t drift_of = 10'000; // one in so many: 100 us a second
  offset_ns_ += static_cast<std::int64_t>(seen_ns - std::min(seen_ns, seen_ns_)) / drift_of;
  seen_ns_ = std::max(seen_ns_, seen_ns);
  const auto ended = begin + static_cast<std::int64_t>(duration_ns);
  offset_ns_ = std::min(offset_ns_, static_cast<std::int64_t>(seen_ns) - ended);
  return last_ns_;
}

namespace {

constexpr std::size_t rows_max = limits::streams_max;

struct stream_row {
  std::uint32_t context = 0;
  const void* stream = nullptr;
};

/// Rows of the picture: one for each stream, in order of appearance; the rest share the last.
class stream_rows {
 public:
  std::size_t of(const timeline_event& event) {
    for (std::size_t at = 0; at < used_; ++at)
      if (rows_[at].context == event.context && rows_[at].stream == event.stream)
        return at;
    if (used_ == rows_.size())
      return rows_.size() - 1;
    rows_[used_] = {event.context, event.stream};
    return used_++;
  }
  std::size_t size() const { return used_; }
  const stream_row& at(std::size_t index) const { return rows_[index]; }

 private:
  std::array<stream_row, rows_max> rows_;
  std::size_t used_ = 0;
};

void add_name(text& into, const operation& what, void (*name_of_function)(text&, const void*)) {
  switch (what.what) {
  case operation_class::collective:
    into.add("%s", diag::name_of(what.collective()));
    return;
  case operation_class::gemm:
    into.add("gemm %ux%ux%u", what.m, what.n, what.k);
    return;
  case operation_class::copy:
    into.add("%s", trace::name_of(static_cast<copy_kind>(what.kind)));
    return;
  case operation_class::launch:
    name_of_function(into, what.function);
    return;
  }
}

void add_arguments(text& into, const timeline_event& event) {
  const auto& what = event.what;
  into.add("\"launched_us_before\":%.3f",
           static_cast<double>(event.began_ns - std::min(event.began_ns, event.launched_ns)) / 1e3);
  if (event.under_way)
    into.add(",\"finished\":false");
  if (what.what == operation_class::collective)
    into.add(",\"communicator\":\"nccl-%016" PRIx64 "\",\"members\":%u,\"sequence\":%" PRIu64
             ",\"bytes\":%" PRIu64 ",\"dtype\":\"%s\",\"calls\":%u",
             what.communicator, what.members, what.sequence, what.bytes, trace::name_of(what.type),
             what.calls);
  else if (what.what == operation_class::gemm)
    into.add(",\"batch\":%u,\"dtype\":\"%s\",\"flop\":%" PRIu64, what.batch,
             trace::name_of(what.type), what.flop);
  else if (what.what == operation_class::copy)
    into.add(",\"bytes\":%" PRIu64, what.bytes);
}

void add_event(text& into, const timeline_event& event, const timeline_labels& labels,
               std::size_t row, void (*name_of_function)(text&, const void*)) {
  const auto epoch_us = [&](std::uint64_t ns) {
    return static_cast<double>(static_cast<std::int64_t>(ns) + labels.to_epoch_ns) / 1e3;
  };
  into.add(",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"", trace::name_of(event.what.what));
  add_name(into, event.what, name_of_function);
  into.add("\",\"pid\":%d,\"tid\":%zu,\"ts\":%.3f,\"dur\":%.3f,\"args\":{", labels.rank, row,
           epoch_us(event.began_ns),
           static_cast<double>(event.ended_ns - std::min(event.ended_ns, event.began_ns)) / 1e3);
  add_arguments(into, event);
  into.add("}}");
}

void add_row_name(text& into, const stream_row& row, int rank, std::size_t index) {
  into.add(",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%zu,"
           "\"args\":{\"name\":\"stream %zu (%p)\"}}",
           rank, index, index, row.stream);
}

} // namespace

bool render_timeline(text& into, const timeline_event* events, std::size_t count,
                     const timeline_labels& labels, const char* why,
                     void (*name_of_function)(text&, const void*)) {
  into.add("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"why\":\"%s\",\"rank\":%d,"
           "\"local_rank\":%d,\"world_size\":%d},\n\"traceEvents\":[\n"
           "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":\"",
           why, labels.rank, labels.local_rank, labels.world_size, labels.rank);
  into.add_escaped(labels.job);
  into.add(" rank %d\"}}", labels.rank);
  stream_rows rows;
  for (std::size_t at = 0; at < count && !into.full(); ++at) {
    const auto before = into.written().size();
    const auto known = rows.size();
    const auto row = rows.of(events[at]);
    if (rows.size() > known)
      add_row_name(into, rows.at(row), labels.rank, row);
    add_event(into, events[at], labels, row, name_of_function);
    if (into.full())
      into.cut_to(before);
  }
  into.end_with("\n]}\n");
  return !into.full();
}

} // namespace troupe::trace
