#pragma once

#include "ckpt/catalog/line.hpp"
#include "ckpt/load/load_plan.hpp"
#include "runtime/base/time.hpp"
#include "worker/process_arena.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// A training process's part of a load: what it sees, and its shard of a complete step.
namespace troupe::ckpt {

/// A training process's part of a save at its checkpoint directory: the run that it is of.
/// `saves_as` of line.hpp; tried for as long as a load.
result<generation> saves_as_at(const std::string& place, const run_at_start& who);

enum class damage : std::uint8_t {
  none,  ///< it may be read at another look, or is another's by now, or of another version
  lacks, ///< a file is not there, or has another size
  bytes, ///< its bytes are others than those whose checksum the manifest has
};

/// Of a shard that could not be read for this reason, where the manifest is still that save's.
damage damage_of(const error& e, const std::string& place, const state_id& of,
                 std::uint32_t number);

/// `begin_run`, tried once, since training waits for it. Returns the complete steps that are not of
/// the run's line, newest first.
result<std::vector<std::uint64_t>> begin_run_at(const std::string& place, const run_at_start& who,
                                                generation as, const origin& from);

/// How long storage that has failed with what may pass (an input/output error, a server that is
/// away) is tried again. A load that gave up at once would pass over the newest step.
inline constexpr duration storage_tried_for = 30s;

struct rank_in_world {
  global_rank rank = 0;
  std::uint32_t world_size = 1;
  std::uint32_t shards = 1; ///< of a step
};

/// Of the snapshots in the arena those that can be a rank's part of a state, be it this one or
/// another; and those of other worlds.
void see_memory(const process_arena& arena, const rank_in_world& who, rank_view& into);
/// What this node holds of others' snapshots of a place.
void see_parities(process_arena& of_others, place_id place, const rank_in_world& who,
                  rank_view& into);
/// The newest complete steps at a place. One that could not be read in all that time is passed
/// over.
result<void> see_place(const std::string& place, std::size_t most, rank_view& into);

/// The size of a shard's file.
result<std::uint64_t> shard_bytes(const std::string& place, const state_id& of,
                                  std::uint32_t number);
/// Reads it into memory that has room for it. Its size and checksum are those that the manifest
/// says, else it is an error.
result<void> read_shard(const std::string& place, const state_id& of, std::uint32_t number,
                        char* into, std::uint64_t room);

/// The steps there that a load of this state has passed over, or one that found nothing, and why: a
/// line each, "what<TAB>why<TAB>1", or 0 if it never was complete.
result<std::string> passed_over_at(const std::string& place, const std::optional<state_id>& than);

/// Where a complete step there is: below the place, or `.` for the place itself; empty for one that
/// is not there.
result<std::string> directory_at(const std::string& place, std::uint64_t step);

/// Checkpoints of other tools there, for a person: a line each, "directory<TAB>step<TAB>tracker".
result<std::string> foreign_at(const std::string& place);

} // namespace troupe::ckpt
