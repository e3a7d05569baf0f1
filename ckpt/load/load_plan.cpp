#include "ckpt/load/load_plan.hpp"

#include "ckpt/load/snapshot_places.hpp"

#include <algorithm>
#include <iterator>
#include <map>

namespace troupe::ckpt {

namespace {

using ranks_of_state = std::map<state_id, std::vector<global_rank>>;

/// What is known of all ranks, by state.
struct known {
  explicit known(const std::vector<rank_view>& ranks) : places(ranks) {}

  snapshot_places places;
  ranks_of_state memory; ///< those that have their own part there
  ranks_of_state disk;
  std::set<state_id> all;
  std::optional<step_on_disk> misfit; ///< the newest
  std::optional<state_id> newest_on_disk;
  /// Steps older than this may be complete at a rank that has not listed them.
  std::optional<state_id> listed_down_to;
};

bool fits(const load_question& q, const step_on_disk& step) {
  return step.shards == q.shards && (q.replicated() || step.world_size == q.ranks.size());
}

void add_disk(known& into, const load_question& q, global_rank rank, const rank_view& view) {
  for (const auto& step : view.disk) {
    if (!fits(q, step)) {
      if (!into.misfit || into.misfit->id < step.id)
        into.misfit = step;
      continue;
    }
    into.disk[step.id].push_back(rank);
    into.all.insert(step.id);
    if (!into.newest_on_disk || *into.newest_on_disk < step.id)
      into.newest_on_disk = step.id;
  }
  if (view.more_on_disk && !view.disk.empty() &&
      (!into.listed_down_to || *into.listed_down_to < view.disk.back().id))
    into.listed_down_to = view.disk.back().id;
}

known all_known(const load_question& q) {
  known k(q.ranks);
  for (global_rank rank = 0; rank < q.ranks.size(); ++rank) {
    const auto& view = q.ranks[rank];
    for (const auto& p : view.parities)
      k.all.insert(p.id);
    if (!view.holds)
      continue;
    for (const auto& s : view.memory) {
      k.all.insert(s.id);
      auto& having = k.memory[s.id];
      if ((q.replicated() || s.of == rank) && (having.empty() || having.back() != rank))
        having.push_back(rank);
    }
    add_disk(k, q, rank, view);
  }
  return k;
}

/// Sorted.
const std::vector<global_rank>& at(const ranks_of_state& all, const state_id& id) {
  static const std::vector<global_rank> none;
  const auto found = all.find(id);
  return found == all.end() ? none : found->second;
}

bool has(const std::vector<global_rank>& sorted, global_rank rank) {
  return std::binary_search(sorted.begin(), sorted.end(), rank);
}

bool may(const load_question& q, global_rank rank, source from, const state_id& id) {
  return q.failed.count({rank, from, id}) == 0;
}

/// A state that is the same at all ranks: one that has it is enough. As long as it is only on disks
/// every rank that sees it there reads it for itself, and the others wait.
bool plan_replicated(load_plan& into, const load_question& q, const known& k) {
  const auto& having = at(k.memory, into.what);
  const auto& seeing = at(k.disk, into.what);
  bool can = !having.empty();
  for (global_rank rank = 0; rank < q.ranks.size(); ++rank) {
    if (!q.ranks[rank].holds)
      continue;
    const bool reads = has(seeing, rank) && may(q, rank, source::disk, into.what);
    if (has(having, rank))
      into.from[rank] = source::memory;
    else if (!having.empty() && may(q, rank, source::peer, into.what))
      into.from[rank] = source::peer;
    else if (reads)
      into.from[rank] = source::disk;
    else if (!having.empty())
      return false;
    can = can || reads;
  }
  if (!having.empty())
    into.sender = having.front();
  return can;
}

/// Where a rank gets its own part of `into.what`; nothing: it is nowhere.
std::optional<source> source_of_part(load_plan& into, const load_question& q, const known& k,
                                     global_rank rank) {
  if (has(at(k.memory, into.what), rank))
    return source::memory;
  if (may(q, rank, source::peer, into.what))
    if (const auto there = k.places.find(into.what, rank)) {
      into.moves.push_back({there->at, rank, there->bytes});
      return source::peer;
    }
  if (may(q, rank, source::pieces, into.what))
    if (auto pieces = plan_rebuilding(rank, into.what, q.ranks, k.places)) {
      std::move(pieces->rebuilt.begin(), pieces->rebuilt.end(),
                std::back_inserter(into.pieces.rebuilt));
      std::move(pieces->transfers.begin(), pieces->transfers.end(),
                std::back_inserter(into.pieces.transfers));
      return source::pieces;
    }
  if (has(at(k.disk, into.what), rank) && may(q, rank, source::disk, into.what))
    return source::disk;
  return std::nullopt;
}

/// Each rank needs its own part. The first whose part is nowhere, or nothing.
std::optional<global_rank> plan_sharded(load_plan& into, const load_question& q, const known& k) {
  for (global_rank rank = 0; rank < q.ranks.size(); ++rank) {
    if (!q.ranks[rank].holds)
      continue;
    into.from[rank] = source_of_part(into, q, k, rank);
    if (!into.from[rank])
      return rank;
  }
  return std::nullopt;
}

/// The newest state that all ranks can have.
load_plan newest_loadable(const load_question& q, const known& k) {
  load_plan nothing;
  if (std::none_of(q.ranks.begin(), q.ranks.end(), [](const rank_view& r) { return r.holds; }))
    return nothing;
  for (auto id = k.all.rbegin(); id != k.all.rend(); ++id) {
    load_plan p;
    p.how = load_plan::outcome::load;
    p.what = *id;
    p.from.resize(q.ranks.size());
    if (q.replicated()) {
      if (plan_replicated(p, q, k))
        return p;
      continue;
    }
    const auto lacking = plan_sharded(p, q, k);
    if (!lacking)
      return p;
    if (!nothing.lost)
      nothing.lost = lost_part{*id, *lacking};
  }
  return nothing;
}

/// The newest state of another world of which every shard is in some memory.
std::optional<load_plan> newest_of_another_world(const load_question& q) {
  struct state {
    std::uint32_t world_size = 0, shards = 0;
    std::map<std::uint32_t, foreign_part> parts; ///< by shard
  };
  std::map<state_id, state> all;
  for (global_rank rank = 0; rank < q.ranks.size(); ++rank)
    for (const auto& s : q.ranks[rank].foreign) {
      auto& known = all[s.id];
      if (known.shards == 0) {
        known.world_size = s.world_size;
        known.shards = s.shards;
      }
      if (s.shards == known.shards && s.world_size == known.world_size && s.shard < s.shards)
        known.parts.insert({s.shard, {rank, s.of}});
    }
  for (auto at = all.rbegin(); at != all.rend(); ++at) {
    const auto& [id, known] = *at;
    if (known.shards == 0 || known.parts.size() != known.shards)
      continue;
    load_plan p;
    p.how = load_plan::outcome::reshard;
    p.what = id;
    p.misfits = {id, known.world_size, known.shards};
    for (const auto& [shard, part] : known.parts)
      p.parts.push_back(part);
    return p;
  }
  return std::nullopt;
}

} // namespace

const char* to_string(source s) {
  switch (s) {
  case source::memory:
    return "memory";
  case source::peer:
    return "peer";
  case source::pieces:
    return "pieces";
  case source::disk:
    return "disk";
  }
  return "?";
}

bool load_plan::is_done() const {
  return how == outcome::load && std::all_of(from.begin(), from.end(), [](const auto& one) {
           return !one || *one == source::memory;
         });
}

load_plan plan_load(const load_question& q) {
  const auto k = all_known(q);
  auto best = newest_loadable(q, k);
  const bool found = best.how == load_plan::outcome::load;
  best.newest_seen = k.newest_on_disk;
  const auto older_than = [&](const state_id& id) { return !found || best.what < id; };
  // A node completes a step in its own directory after the others have; and what one rank saw may
  // have been removed since, for a newer one that it has not seen. Both pass within a moment.
  if (k.newest_on_disk && older_than(*k.newest_on_disk) && q.seen_before != k.newest_on_disk)
    best.how = load_plan::outcome::look_again;
  else if (auto other = q.any_world ? newest_of_another_world(q) : std::nullopt;
           other && older_than(other->what) && !(k.misfit && other->what < k.misfit->id)) {
    other->newest_seen = best.newest_seen;
    return *std::move(other);
  } else if (k.misfit && older_than(k.misfit->id)) {
    best.how = load_plan::outcome::misfit;
    best.misfits = *k.misfit;
  } else if (k.listed_down_to && older_than(*k.listed_down_to))
    best.how = load_plan::outcome::look_deeper;
  return best;
}

} // namespace troupe::ckpt
