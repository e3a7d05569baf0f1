#include "ckpt/arena/node_memory.hpp"

#include "ckpt/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace troupe::ckpt {

namespace {

/// Launchers that share a control group know nothing of each other: so many of them may decide at
/// one moment.
constexpr std::uint64_t ample_for = 4;

constexpr auto most = std::numeric_limits<std::uint64_t>::max();

std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
  return a > most - b ? most : a + b;
}

std::uint64_t times(std::uint64_t bytes, std::uint64_t count) {
  return count != 0 && bytes > most / count ? most : bytes * count;
}

std::uint64_t less(std::uint64_t a, std::uint64_t b) {
  return a - std::min(a, b);
}

/// A node's memory at the moment of one question.
class view {
 public:
  view(const node_memory& node, std::uint64_t room) : node_(node), room_(room) {
    for (const auto& r : node.ranks)
      largest_ = std::max(largest_, r.opened ? r.snapshot : 0);
  }

  /// What rank `r` needs to keep so many snapshots. A rank that has not declared its size counts as
  /// the largest that has.
  std::uint64_t need(const rank_memory& r, std::uint32_t kept) const {
    if (!r.opened)
      return 0;
    const auto snapshots = r.wanted == 0 ? kept : std::min(kept, r.wanted);
    return sum(r.mapped, times(r.snapshot == 0 ? largest_ : r.snapshot, snapshots));
  }
  std::uint64_t need_of_all(std::uint32_t kept) const {
    std::uint64_t all = 0;
    for (const auto& r : node_.ranks)
      all = sum(all, need(r, kept));
    return all;
  }

  /// All that is used already or may be used.
  std::uint64_t total() const {
    auto all = sum(room_, node_.replicas_backed);
    for (const auto& r : node_.ranks)
      all = sum(all, r.backed);
    return all;
  }
  std::uint64_t headroom() const {
    return std::clamp(total() / limits::memory_headroom_divisor, limits::memory_headroom_min,
                      limits::memory_headroom_max);
  }
  /// What there is for the snapshots of all ranks.
  std::uint64_t there() const {
    return less(less(total(), headroom()),
                std::max(node_.replicas_reserved, node_.replicas_backed));
  }
  /// What has to be there before ranks keep more again: else a few MiB would change it to and fro.
  std::uint64_t there_to_raise() const { return less(there(), headroom()); }
  /// The most of `from` snapshots of each rank for which `bytes` suffice.
  std::uint32_t fitting(std::uint32_t from, std::uint64_t bytes) const {
    while (from > 0 && need_of_all(from) > bytes)
      --from;
    return from;
  }

  /// Bytes that other ranks touch just now.
  std::uint64_t in_transit(std::size_t but_of) const {
    return over_others(but_of, [](const rank_memory& r) { return r.in_transit; });
  }
  /// Bytes that other ranks may touch still. What is in transit counts as not touched.
  std::uint64_t promised(std::size_t but_of) const {
    return over_others(but_of, [](const rank_memory& r) {
      return std::max(less(r.planned, r.backed), r.in_transit);
    });
  }
  /// The same, if what is in transit is touched already.
  std::uint64_t promised_at_least(std::size_t but_of) const {
    return over_others(
        but_of, [](const rank_memory& r) { return less(less(r.planned, r.backed), r.in_transit); });
  }
  /// Bytes that other ranks have beyond what is planned for them, and give back.
  std::uint64_t surplus(std::size_t but_of) const {
    return over_others(but_of, [](const rank_memory& r) { return less(r.backed, r.planned); });
  }
  /// The same of all ranks.
  std::uint64_t promised_to_all() const {
    return sum(promised(node_.ranks.size()), promised_to_replicas());
  }
  std::uint64_t promised_to_replicas() const {
    return less(node_.replicas_reserved, node_.replicas_backed);
  }

 private:
  template<class Bytes>
  std::uint64_t over_others(std::size_t but_of, Bytes&& of) const {
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < node_.ranks.size(); ++i)
      if (i != but_of && node_.ranks[i].opened)
        all = sum(all, of(node_.ranks[i]));
    return all;
  }

  const node_memory& node_;
  std::uint64_t room_;
  std::uint64_t largest_ = 0;
};

void plan(node_memory& node, const view& v, std::uint32_t kept) {
  node.kept = kept;
  for (auto& r : node.ranks)
    r.planned = kept == 0 ? r.backed : v.need(r, kept);
}

/// What the rank may touch now, beside what others were promised.
std::uint64_t may_touch(const view& v, std::uint64_t room, std::size_t rank) {
  return less(less(room, v.headroom()), sum(v.promised(rank), v.promised_to_replicas()));
}

/// Whether the last decision covers what the rank has declared, and the memory that it counted with
/// is there still. If it is not, training has grown by more than was left for it.
bool as_planned(const node_memory& node, const view& v, std::uint64_t room, const memory_wish& w) {
  const auto& me = node.ranks[w.rank];
  if (node.kept == 0 || v.need(me, node.kept) > me.planned)
    return false;
  if (sum(me.backed, w.more) > me.planned)
    return true;
  // As long as others have a surplus, not all that is planned is there.
  if (v.surplus(w.rank) > 0)
    return w.more <= may_touch(v, room, w.rank);
  return w.more <= less(room, sum(v.promised_at_least(w.rank), v.promised_to_replicas()));
}

/// Decides for all ranks. False: nothing is decided, since it is not known what others touch now.
bool decide_for_all(node_memory& node, const view& v, const memory_wish& w, memory_answer& a) {
  const auto wanted = wanted_by_ranks(node);
  const auto from = w.may_raise || node.kept == 0 ? wanted : node.kept;
  auto kept = v.fitting(from, v.there());
  if (w.may_wait && v.fitting(from, sum(v.there(), v.in_transit(w.rank))) > kept)
    return false;
  if (node.kept != 0 && kept > node.kept)
    kept = std::max(node.kept, v.fitting(kept, v.there_to_raise()));
  a.planned = true;
  a.wanted_by_all = v.need_of_all(wanted);
  a.there_for_all = v.there();
  a.needed = v.need_of_all(1);
  a.there = v.there();
  plan(node, v, kept);
  return true;
}

/// In a new life there may be memory for more.
void raise_if_it_fits(node_memory& node, const view& v, const memory_wish& w, memory_answer& a) {
  const auto wanted = wanted_by_ranks(node);
  const auto kept = v.fitting(wanted, v.there_to_raise());
  if (!w.may_raise || kept <= node.kept)
    return;
  a.planned = true;
  a.wanted_by_all = v.need_of_all(wanted);
  a.there_for_all = v.there();
  plan(node, v, kept);
}

} // namespace

memory_answer decide(node_memory& node, std::uint64_t room, const memory_wish& w) {
  const view v(node, room);
  memory_answer a;
  const auto covered = as_planned(node, v, room, w);
  if (covered) {
    node.ranks[w.rank].planned = v.need(node.ranks[w.rank], node.kept);
    raise_if_it_fits(node, v, w, a);
  } else if (!decide_for_all(node, v, w, a)) {
    a.verdict = memory_verdict::wait;
    return a;
  }
  if (node.kept == 0)
    return a;
  const auto& me = node.ranks[w.rank];
  const auto within_plan = covered && sum(me.backed, w.more) <= me.planned;
  a.needed = w.more;
  a.there = may_touch(v, room, w.rank);
  a.ample = less(room, v.headroom()) / ample_for >= sum(v.promised_to_all(), w.more);
  if (w.more == 0 || within_plan || w.more <= a.there)
    a.verdict = memory_verdict::granted;
  else if (w.may_wait && (v.in_transit(w.rank) > 0 || v.surplus(w.rank) > 0))
    a.verdict = memory_verdict::wait;
  return a;
}

std::uint64_t headroom_of(const node_memory& node, std::uint64_t room) {
  return view(node, room).headroom();
}

std::uint64_t room_for_replicas(const node_memory& node, std::uint64_t room) {
  const view v(node, room);
  return may_touch(v, room, node.ranks.size());
}

std::uint32_t wanted_by_ranks(const node_memory& node) {
  std::uint32_t wanted = 1;
  for (const auto& r : node.ranks)
    wanted = std::max(wanted, r.opened ? r.wanted : 0);
  return wanted;
}

std::size_t ranks_that_save(const node_memory& node) {
  return static_cast<std::size_t>(std::count_if(node.ranks.begin(), node.ranks.end(),
                                                [](const rank_memory& r) { return r.opened; }));
}

std::string kept_line(std::uint32_t kept, std::uint32_t wanted, std::uint64_t bytes_wanted,
                      std::uint64_t bytes_there, const std::string& bound) {
  if (kept >= wanted)
    return fmt::format("memory for {} snapshots per rank again", kept);
  const auto sizes = fmt::format("{} MiB wanted, {} MiB there ({})", mib_needed(bytes_wanted),
                                 bytes_there >> 20, bound);
  if (kept > 1)
    return fmt::format("memory for {} snapshots per rank, not for {}: {}", kept, wanted, sizes);
  return fmt::format("memory for one snapshot per rank only: {}; a rank that dies while it saves "
                     "falls back to the checkpoint on disk",
                     sizes);
}

} // namespace troupe::ckpt
