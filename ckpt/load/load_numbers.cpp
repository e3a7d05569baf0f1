#include "ckpt/load/load_numbers.hpp"

#include <limits>
#include <utility>

namespace troupe::ckpt {

namespace {

using numbers = std::vector<std::uint64_t>;

void put(numbers& into, const state_id& id) {
  into.insert(into.end(), {id.save.made_by.value, id.save.number, id.step});
}

void put(numbers& into, const std::optional<state_id>& id) {
  into.push_back(id ? 1 : 0);
  put(into, id.value_or(state_id{}));
}

/// Takes numbers off a row; after the first that is not there, or is too large, only zeros.
class reader {
 public:
  reader(const std::uint64_t* at, std::size_t count) : at_(at), left_(count) {}

  std::uint64_t next() {
    if (left_ == 0) {
      sound_ = false;
      return 0;
    }
    --left_;
    return *at_++;
  }
  std::uint64_t next_below(std::uint64_t bound) {
    const auto value = next();
    sound_ = sound_ && value < bound;
    return value < bound ? value : 0;
  }
  std::uint32_t small() { return static_cast<std::uint32_t>(next_below(std::uint64_t{1} << 32)); }
  bool flag() { return next_below(2) != 0; }
  /// The length of a list whose elements have at least so many numbers each: never more than there
  /// are.
  std::size_t length(std::size_t numbers_each) { return next_below(left_ / numbers_each + 1); }
  state_id id() {
    const auto made_by = next(), number = next(), step = next();
    return {{generation{made_by}, number}, step};
  }
  std::optional<state_id> maybe_id() {
    const bool there = flag();
    const auto found = id();
    return there ? std::optional(found) : std::nullopt;
  }
  bool sound() const { return sound_; }
  bool at_end() const { return left_ == 0; }

 private:
  const std::uint64_t* at_;
  std::size_t left_;
  bool sound_ = true;
};

parity_seen parity_of(reader& in) {
  parity_seen p;
  p.id = in.id();
  p.by.members = static_cast<std::uint32_t>(in.next_below(code::members_max + 1));
  p.by.parity = in.small();
  p.stripe = in.small();
  p.row = in.small();
  p.slot = in.next();
  p.sequence = in.next();
  for (std::uint32_t member = 0; member < p.by.members; ++member) {
    p.ranks.push_back(in.small());
    p.bytes.push_back(in.next());
    p.crc32.push_back(in.small());
  }
  return p;
}

rank_view view_of(reader& in) {
  rank_view view;
  view.holds = in.flag();
  view.more_on_disk = in.flag();
  view.memory.resize(in.length(5));
  for (auto& s : view.memory) {
    s.id = in.id();
    s.bytes = in.next();
    s.of = in.small();
  }
  view.disk.resize(in.length(5));
  for (auto& step : view.disk) {
    step.id = in.id();
    step.world_size = in.small();
    step.shards = in.small();
  }
  for (auto left = in.length(9); left > 0; --left)
    view.parities.push_back(parity_of(in));
  view.foreign.resize(in.length(8));
  for (auto& s : view.foreign) {
    s.id = in.id();
    s.bytes = in.next();
    s.of = in.small();
    s.shard = in.small();
    s.shards = in.small();
    s.world_size = in.small();
  }
  return view;
}

} // namespace

numbers to_numbers(const rank_view& view) {
  numbers all{view.holds, view.more_on_disk, view.memory.size()};
  for (const auto& s : view.memory) {
    put(all, s.id);
    all.insert(all.end(), {s.bytes, s.of});
  }
  all.push_back(view.disk.size());
  for (const auto& step : view.disk) {
    put(all, step.id);
    all.insert(all.end(), {step.world_size, step.shards});
  }
  all.push_back(view.parities.size());
  for (const auto& p : view.parities) {
    put(all, p.id);
    all.insert(all.end(), {p.by.members, p.by.parity, p.stripe, p.row, p.slot, p.sequence});
    for (std::size_t member = 0; member < p.by.members; ++member)
      all.insert(all.end(), {p.ranks[member], p.bytes[member], p.crc32[member]});
  }
  all.push_back(view.foreign.size());
  for (const auto& s : view.foreign) {
    put(all, s.id);
    all.insert(all.end(), {s.bytes, s.of, s.shard, s.shards, s.world_size});
  }
  return all;
}

result<load_question> question_of(const std::uint64_t* all, std::size_t count) {
  reader in(all, count);
  load_question q;
  q.shards = in.small();
  q.any_world = in.flag();
  q.seen_before = in.maybe_id();
  for (auto left = in.length(5); left > 0; --left) {
    failed_source one;
    one.rank = in.small();
    one.from = static_cast<source>(in.next_below(static_cast<std::uint64_t>(source::disk) + 1));
    one.id = in.id();
    q.failed.insert(one);
  }
  while (in.sound() && !in.at_end())
    q.ranks.push_back(view_of(in));
  if (!in.sound() || q.shards == 0)
    return failure(errc::invalid, "what the ranks have told each other cannot be read: are they "
                                  "of one release?");
  return q;
}

numbers to_numbers(const load_plan& plan) {
  numbers all{static_cast<std::uint64_t>(plan.how), plan.is_done()};
  put(all, plan.what);
  put(all, plan.newest_seen);
  all.insert(all.end(), {plan.misfits.world_size, plan.misfits.shards, plan.misfits.id.step,
                         plan.sender, plan.from.size()});
  for (const auto& from : plan.from)
    all.push_back(from ? static_cast<std::uint64_t>(*from) + 1 : 0);
  all.push_back(plan.pieces.rebuilt.size());
  for (const auto& one : plan.pieces.rebuilt)
    all.insert(all.end(), {one.rank, one.bytes, one.crc32});
  all.push_back(plan.pieces.transfers.size());
  for (const auto& t : plan.pieces.transfers) {
    const auto parity = t.parity.value_or(transfer::parity_at{});
    all.insert(all.end(), {t.source, t.of, t.parity.has_value(), parity.slot, parity.sequence,
                           t.begin, t.end, t.to, t.into, t.times});
  }
  all.push_back(plan.moves.size());
  for (const auto& one : plan.moves)
    all.insert(all.end(), {one.source, one.to, one.bytes});
  put(all, plan.lost ? std::optional(plan.lost->id) : std::nullopt);
  all.push_back(plan.lost ? plan.lost->of : 0);
  all.push_back(plan.parts.size());
  for (const auto& one : plan.parts)
    all.insert(all.end(), {one.at, one.of});
  return all;
}

} // namespace troupe::ckpt
