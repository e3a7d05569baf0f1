#include "tests/sim/checkpoints.hpp"
#include "tests/sim/replication_host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

/// Copies of snapshots at other nodes, as python/troupe/checkpoint/copies.py has them made.
namespace troupe::sim {

namespace {

/// Those that hold pieces of each other's: as many groups as there can be, which nodes that are
/// left over join. None if the rank is alone there.
ckpt::slot_group group_of(const process_record& me, const std::vector<const process_record*>& all,
                          const redundancy& how) {
  std::vector<std::string> nodes;
  for (const auto* p : all)
    if (std::find(nodes.begin(), nodes.end(), p->node) == nodes.end())
      nodes.push_back(p->node);
  const auto most = ckpt::slot_group::members_max;
  const auto groups =
      std::max({std::size_t{1}, nodes.size() / how.members, (nodes.size() + most - 1) / most});
  const auto group_at = [&](const std::string& node) {
    const auto at = std::find(nodes.begin(), nodes.end(), node) - nodes.begin();
    std::size_t number = 0;
    while (nodes.size() * (number + 1) / groups <= static_cast<std::size_t>(at))
      ++number;
    return number;
  };
  ckpt::slot_group made;
  for (const auto* p : all) {
    if (p->local != me.local || group_at(p->node) != group_at(me.node))
      continue;
    if (p->rank == me.rank)
      made.me = made.members;
    made.ranks[made.members] = p->rank;
    std::copy(p->node.begin(), p->node.end(), made.addresses[made.members].begin());
    ++made.members;
  }
  made.parity = std::min(how.parity, made.members - 1);
  return made;
}

/// What the table says of a snapshot of which copies are requested.
ckpt::snapshot_to_copy to_copy_in(const ckpt::slots& words, local_rank local, std::size_t slot,
                                  duration within) {
  const auto& says = words.snapshot(slot);
  const auto& by = words.group(slot);
  ckpt::snapshot_to_copy w;
  static_cast<ckpt::snapshot_here&>(w) = {
      local,     slot,      words.word(slot).sequence, says.step, generation{says.generation},
      says.save, says.rank, says.world_size,           says.bytes};
  for (std::size_t i = 0; i < by.members; ++i)
    w.by.members.push_back({by.ranks.at(i), ckpt::text_in(by.addresses.at(i))});
  w.by.parity = by.parity;
  w.by.me = by.me;
  w.within = within;
  if (const auto base = words.replica_base())
    w.whole =
        ckpt::held_step{generation{words.snapshot(*base).generation}, words.snapshot(*base).step};
  return w;
}

ckpt::state_id id_of(const ckpt::slot_snapshot& says) {
  return {{generation{says.generation}, says.save}, says.step};
}

ckpt::parity_seen seen(const sim_piece_memory::piece& p) {
  const auto& h = p.header;
  ckpt::parity_seen made{
      id_of(p.says), {h.members, h.parity}, h.stripe, h.row, p.slot, p.sequence, {}, {}, {}};
  made.ranks.assign(h.ranks.begin(), h.ranks.begin() + h.members);
  made.bytes.assign(h.bytes.begin(), h.bytes.begin() + h.members);
  made.crc32.assign(h.crc32.begin(), h.crc32.begin() + h.members);
  return made;
}

} // namespace

void checkpoints::copy(std::uint64_t step, std::uint32_t parity) {
  const auto which = newest_that_trains();
  if (!which)
    return;
  const auto now = begin_attempt(*which, step);
  now->to_disk = false;
  now->copies = {ckpt::slot_group::members_max, parity};
  copy_state(now);
}

// ---- What all ranks agree on ----

checkpoints::copies_state checkpoints::last_copies(generation which) {
  bool all_held = true;
  for (const auto& [process, wanted] : last_copies_[which].of) {
    const auto& p = training_.all().at(process - 1);
    const auto words = memory_of(p.node, p.local);
    const auto word = words.word(wanted.slot);
    const bool under_way = wanted.how == wanted_copies::snapshot::requested &&
                           word.sequence == wanted.sequence && word.copied;
    if (under_way || wanted.how == wanted_copies::snapshot::not_yet)
      return copies_state::under_way;
    const auto how = words.finalized(wanted.slot, wanted.sequence, ckpt::purpose::copies);
    all_held =
        all_held && wanted.how == wanted_copies::snapshot::requested && how && how->succeeded;
  }
  return all_held && !last_copies_[which].of.empty() ? copies_state::held : copies_state::failed;
}

/// Those that all have there stay in every memory until others are.
bool checkpoints::agree_on_copies(generation which) {
  const auto state = last_copies(which);
  auto& last = last_copies_[which];
  if (state != copies_state::held || std::exchange(last.told, true))
    return state != copies_state::under_way;
  held_state held;
  held.by = which;
  held.id = last.what.save;
  held.step = last.what.step;
  std::map<global_rank, std::string> nodes;
  for (const auto& [process, wanted] : last.of) {
    const auto& p = training_.all().at(process - 1);
    memory_of(p.node, p.local).set_replica_base(wanted.sequence);
    nodes[p.rank] = p.node;
    if (wanted.by.me == 0)
      held.groups.push_back({{wanted.by.ranks.begin(), wanted.by.ranks.begin() + wanted.by.members},
                             wanted.by.parity});
  }
  for (const auto& [rank, node] : nodes)
    held.nodes.push_back(node);
  world_.write("-", fmt::format("ckpt   g{} step {} is held by others", which.value, held.step));
  world_.tell(&observer::copies_agreed, held);
  return true;
}

void checkpoints::want_copies(generation which, const ckpt::state_id& what, const redundancy& how,
                              const std::map<std::uint64_t, std::size_t>& slots) {
  std::vector<const process_record*> all;
  for (const auto process : training_.ranks_of(which))
    all.push_back(&training_.all().at(process - 1));
  wanted_copies wanted;
  wanted.what = what;
  for (const auto* p : all) {
    const auto slot = slots.find(p->number);
    const auto by = group_of(*p, all, how);
    if (slot == slots.end() || by.members < 2)
      return;
    wanted.of[p->number] = {slot->second, memory_of(p->node, p->local).word(slot->second).sequence,
                            by};
  }
  last_copies_[which] = std::move(wanted);
  for (const auto* p : all)
    world_.events.in(world_.between({}, agreement_most),
                     [this, which, process = p->number] { request_copies(which, process); });
}

void checkpoints::request_copies(generation which, std::uint64_t process) {
  const auto& p = training_.all().at(process - 1);
  if (p.ended)
    return;
  auto& last = last_copies_.at(which);
  auto& wanted = last.of.at(process);
  auto words = memory_of(p.node, p.local);
  const bool can = words.word(wanted.slot).sequence == wanted.sequence &&
                   words.request_copies(wanted.slot, wanted.by);
  wanted.how = can ? wanted_copies::snapshot::requested : wanted_copies::snapshot::refused;
  if (!can)
    return;
  world_.write(p.node, fmt::format("ckpt   g{} rank {} wants step {} held by others", p.which.value,
                                   p.rank, last.what.step));
  world_.tell(&observer::copies_requested, p.node,
              to_copy_in(words, p.local, wanted.slot, options_.save_within), which);
  if (const auto c = copiers_[p.node].lock())
    c->look();
}

void checkpoints::go_back_to(generation which, const ckpt::state_id& what) {
  std::map<std::uint64_t, std::size_t> at;
  for (const auto process : training_.ranks_of(which)) {
    const auto& p = training_.all().at(process - 1);
    auto words = memory_of(p.node, p.local);
    for (const auto slot : words.oldest_first())
      if (words.word(slot).state == ckpt::slot_state::ready &&
          id_of(words.snapshot(slot)) == what) {
        words.set_rollback_point(words.word(slot).sequence);
        at[process] = slot;
      }
  }
  if (options_.copies.parity != 0 && !options_.replicated && !at.empty())
    want_copies(which, what, options_.copies, at);
}

// ---- What a node does about them ----

std::vector<ckpt::snapshot_to_copy> checkpoints::copies_requested_of(const std::string& node) {
  std::vector<ckpt::snapshot_to_copy> all;
  for (const auto& [local, table] : memories_[node].tables) {
    const auto words = memory_of(node, local);
    for (const auto slot : words.oldest_first())
      if (const auto word = words.word(slot); word.state == ckpt::slot_state::ready && word.copied)
        all.push_back(to_copy_in(words, local, slot, options_.save_within));
  }
  return all;
}

void checkpoints::finalize_copy(const std::string& node, const ckpt::snapshot_to_copy& snapshot,
                                const result<void>& how) {
  auto words = memory_of(node, snapshot.local);
  if (words.word(snapshot.slot).sequence != snapshot.sequence || !words.word(snapshot.slot).copied)
    return;
  words.finalize(snapshot.slot, snapshot.sequence, {how.has_value(), how ? "" : how.error().what},
                 ckpt::purpose::copies);
  world_.write(node, fmt::format("ckpt   g{} rank {} step {} finalized: {}", snapshot.made_by.value,
                                 snapshot.rank, snapshot.step,
                                 how ? "held by others" : how.error().what));
  world_.tell(&observer::copies_finalized, node, snapshot, how);
  // Some programs wait for that, others go on and tell each other at their next save.
  if (how && world_.random.chance(0.5))
    for (const auto which : training_.together())
      agree_on_copies(which);
}

// ---- What there is of them ----

std::vector<ckpt::parity_seen> checkpoints::parities_at(const std::string& node, local_rank local,
                                                        std::uint32_t world_size) {
  std::vector<ckpt::parity_seen> found;
  for (const auto& p : copies_.memory_of(node).pieces(local))
    if (p.says.world_size == world_size)
      found.push_back(seen(p));
  return found;
}

void checkpoints::say_newest_in_memory() {
  ckpt::load_question q;
  std::optional<ckpt::state_id> newest;
  const auto snapshots = [this](const auto& each) {
    for (auto& [node, m] : memories_)
      for (auto& [local, table] : m.tables) {
        const ckpt::slots words(*table, ckpt::slots::snapshots_max);
        for (const auto slot : words.oldest_first())
          if (words.word(slot).state == ckpt::slot_state::ready)
            each(node, local, words.snapshot(slot));
      }
  };
  snapshots([&](const std::string&, local_rank, const ckpt::slot_snapshot& says) {
    if (newest && id_of(says) < *newest)
      return;
    newest = id_of(says);
    q.ranks.assign(says.world_size, {});
  });
  q.shards = static_cast<std::uint32_t>(q.ranks.size());
  for (auto& view : q.ranks)
    view.holds = true;
  snapshots([&](const std::string& node, local_rank local, const ckpt::slot_snapshot& says) {
    if (says.world_size != q.shards)
      return;
    q.ranks[says.rank].memory.push_back({id_of(says), says.bytes, says.rank});
    q.ranks[says.rank].parities = parities_at(node, local, q.shards);
  });
  const auto plan = ckpt::plan_load(q);
  if (plan.how != ckpt::load_plan::outcome::load)
    return world_.write("-", "ckpt   no step is in memory");
  for (global_rank rank = 0; rank < plan.from.size(); ++rank)
    world_.write("-",
                 fmt::format("ckpt   step {} of rank {} comes from {}", plan.what.step, rank,
                             plan.from[rank] == ckpt::source::memory ? "its own memory"
                                                                     : "pieces that others hold"));
}

} // namespace troupe::sim
