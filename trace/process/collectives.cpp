#include "trace/process/collectives.hpp"

#include "trace/process/real.hpp"

#include <algorithm>

namespace troupe::trace {

namespace {

constexpr int in_progress = 7;

/// For rows only: they are made when communicators are, which takes NCCL seconds.
mutex making_rows;

real_function next_count("ncclCommCount", "libnccl.so");

/// 0: NCCL does not say, or not yet.
std::uint32_t members_of(abi::nccl_communicator communicator, const void* caller) {
  int count = 0;
  auto* const real = next_count.as<abi::nccl_result(abi::nccl_communicator, int*)>(caller);
  if (!real || real(communicator, &count) != abi::nccl_success || count < 0)
    return 0;
  return static_cast<std::uint32_t>(count);
}

communicators& all() {
  return the_tracer().all_communicators();
}

/// What is found out only after the row was made: its members, and the page of progress.
void complete(communicators::row& row, abi::nccl_communicator communicator, const void* caller) {
  if (row.members == 0)
    row.members = members_of(communicator, caller);
  const auto sequence = row.sequence.load(std::memory_order_relaxed);
  const auto name = row.name.load();
  // The library of training processes may be loaded at any time: ask ever more rarely.
  if (name == 0 || row.page_row != 0 || (sequence & (sequence + 1)) != 0)
    return;
  const locked lock(making_rows);
  auto& page = the_tracer().page();
  page.look();
  row.page_row =
      page.row_of(name, row.members, static_cast<std::uint32_t>(the_tracer().told().world_size));
}

} // namespace

std::size_t row_of(abi::nccl_communicator communicator, const void* caller) {
  auto at = all().find(communicator);
  if (at == communicators::none) {
    add_communicator(communicator, 0, members_of(communicator, caller));
    at = all().find(communicator);
  }
  if (at != communicators::none)
    complete(all().at(at), communicator, caller);
  return at;
}

void add_communicator(abi::nccl_communicator communicator, std::uint64_t name,
                      std::uint32_t members) {
  if (!communicator || !the_tracer().on())
    return;
  const locked lock(making_rows);
  // The memory of one that is gone may be another's now.
  all().remove(communicator);
  all().add(communicator, name, members, 0);
}

void remove_communicator(abi::nccl_communicator communicator) {
  const locked lock(making_rows);
  if (communicator)
    all().remove(communicator);
}

std::uint64_t name_of_next_part(abi::nccl_communicator parent, std::int64_t color) {
  const auto at = all().find(parent);
  if (at == communicators::none)
    return 0;
  auto& row = all().at(at);
  const auto split = row.splits.fetch_add(1);
  return row.name == 0 ? 0 : name_of_part(row.name, split, color);
}

void launched_collective::add_bytes(const collective_call& call) {
  const auto bytes =
      collective_bytes(call.kind, call.count, element_of_nccl(call.type), what_.members);
  what_.bytes += bytes;
  if (call.kind == diag::collective::send) {
    sent_ += bytes;
    ++sends_;
  } else if (call.kind == diag::collective::recv) {
    received_ += bytes;
  }
}

void launched_collective::begin(const collective_call& call, std::size_t row) {
  *this = {};
  row_ = row;
  stream_ = call.stream;
  what_.what = operation_class::collective;
  what_.kind = static_cast<std::uint8_t>(call.kind);
  what_.type = element_of_nccl(call.type);
  what_.calls = 1;
  if (row == communicators::none) {
    the_tracer().not_timed(untimed::no_place);
    return;
  }
  what_.members = all().at(row).members;
  what_.communicator = all().at(row).name;
  add_bytes(call);
  pair_ = the_tracer().start(call.stream, &capturing_);
}

void launched_collective::add(const collective_call& call) {
  ++what_.calls;
  add_bytes(call);
  if (what_.type != element_of_nccl(call.type))
    what_.type = element::mixed;
  if (what_.collective() != call.kind)
    what_.kind = static_cast<std::uint8_t>(diag::collective::other);
}

void launched_collective::enter() {
  // What is captured runs later, any number of times, and unseen.
  if (row_ == communicators::none || capturing_)
    return;
  const auto sends_and_receives = sends_ > 0 && received_ > 0;
  if (sends_and_receives && what_.bytes == sent_ + received_) {
    // As many as there are ranks is how an all_to_all is made of them.
    const auto all_to_all = sends_ == what_.members && what_.members > 1;
    what_.kind = static_cast<std::uint8_t>(all_to_all ? diag::collective::all_to_all
                                                      : diag::collective::other);
    what_.bytes = std::max(sent_, received_);
  }
  auto& row = all().at(row_);
  what_.sequence = row.sequence.fetch_add(1, std::memory_order_relaxed) + 1;
  what_.page_row = row.page_row;
  the_tracer().page().entered(what_.page_row, what_.collective(), what_.bytes);
}

void launched_collective::launched(int result) {
  auto& tracer = the_tracer();
  if (result != abi::nccl_success && result != in_progress)
    tracer.failed(operation_class::collective);
  bool handed_over = false;
  if (pair_ != event_pool::none) {
    if (result == abi::nccl_success) {
      handed_over = tracer.finish(pair_, what_, stream_);
    } else {
      tracer.drop(pair_);
      if (result == in_progress)
        tracer.not_timed(untimed::not_enqueued);
    }
  }
  // Without events its end is not seen: it counts as left, rather than as never left.
  if (!handed_over)
    tracer.page().left(what_.page_row);
}

void collective_group::add(const collective_call& call, std::size_t row) {
  for (std::size_t at = 0; at < used_; ++at)
    if (members_[at].is(row, call.stream))
      return members_[at].add(call);
  if (used_ < members_.size())
    members_[used_++].begin(call, row);
  else
    the_tracer().not_timed(untimed::no_place);
}

void collective_group::launching() {
  for (std::size_t at = 0; at < used_; ++at)
    members_[at].enter();
}

void collective_group::launched(int result) {
  for (std::size_t at = 0; at < used_; ++at)
    members_[at].launched(result);
  used_ = 0;
}

} // namespace troupe::trace
