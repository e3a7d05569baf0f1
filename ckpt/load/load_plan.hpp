#pragma once

#include "ckpt/load/rank_view.hpp"
#include "ckpt/load/rebuild_plan.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

/// Which state all ranks go on from, and how each of them gets its part.
///
/// After a failure the ranks come back to different things: one node still has its snapshots in
/// memory, another lost them and has only its disk, a third was away for an hour and holds what has
/// been overtaken since. If each went on from what it sees, ranks of one world would train from
/// different steps; if they took what is quickest, an old snapshot in memory would win over a newer
/// step on a disk. So all ranks tell each other what they see, and each of them makes this plan of
/// the same views. It is pure: the plan is a function of what was told.
///
/// A load is a loop (all ranks in step): look, tell, plan, carry out, and again until the plan says
/// that every rank has the state in memory. What could not be had is told in the next round and is
/// not tried again; what has become complete meanwhile is seen in it.
namespace troupe::ckpt {

/// Where a rank gets its part of the state from.
enum class source : std::uint8_t {
  memory, ///< it has it
  peer,   ///< another rank has it: a state with one shard, or a node that had this rank before
  pieces, ///< it is summed from what other nodes hold
  disk,
};
const char* to_string(source s);

/// What a rank could not get.
struct failed_source {
  global_rank rank = 0;
  source from = source::disk;
  state_id id;

  friend bool operator<(const failed_source& a, const failed_source& b) {
    return std::tie(a.rank, a.from, a.id) < std::tie(b.rank, b.from, b.id);
  }
};

/// A rank's part of the state, which lies with another rank.
struct moved_snapshot {
  global_rank source = 0, to = 0;
  std::uint64_t bytes = 0;
};

/// A part of the state that neither a memory nor a disk has any more.
struct lost_part {
  state_id id;
  global_rank of = 0;
};

/// A part of a state of another world, at a rank of this one.
struct foreign_part {
  global_rank at = 0;
  global_rank of = 0; ///< in that world
};

struct load_question {
  std::vector<rank_view> ranks; ///< by rank
  /// Of a step. One: the state is the same at all ranks. Else each rank has a shard of its own,
  /// which fits only into a world of the same size.
  std::uint32_t shards = 1;
  /// A state of another world is of use, too: its parts are read wherever they are.
  bool any_world = false;
  std::set<failed_source> failed;
  /// The `newest_seen` of the plan before this one, if that said `look_again`.
  std::optional<state_id> seen_before;

  bool replicated() const { return shards == 1; }
};

struct load_plan {
  enum class outcome : std::uint8_t {
    nothing,     ///< there is no state to go on from
    load,        ///< `what`, each rank `from` where it says
    look_again,  ///< after a moment: a step is complete at some ranks, and may be so at all
    look_deeper, ///< older steps than were listed may be the newest that all have
    misfit,      ///< the newest complete step is of a world that this one is not
    reshard,     ///< the newest state is of such a world, and all its parts are in memory
  };
  outcome how = outcome::nothing;
  state_id what;
  /// By rank; nothing for a rank that holds no snapshot, and while what it waits for is read.
  std::vector<std::optional<source>> from;
  global_rank sender = 0;            ///< of a state with one shard, to those whose source is a peer
  std::vector<moved_snapshot> moves; ///< of several shards: for those whose source is a peer
  rebuild_plan pieces;               ///< for those whose source are pieces
  step_on_disk misfits;              ///< with `misfit` and `reshard`
  std::vector<foreign_part> parts;   ///< with `reshard`: by shard
  std::optional<state_id> newest_seen; ///< complete on a disk, and of such a world
  std::optional<lost_part> lost;       ///< with `nothing`: of the newest state of several shards

  /// Every rank that holds a snapshot has this one: the load is over.
  bool is_done() const;
};

load_plan plan_load(const load_question& q);

} // namespace troupe::ckpt
