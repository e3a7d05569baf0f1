#pragma once

#include "actors/master/recovery/world_sizes.hpp"
#include "ckpt/catalog/retention.hpp"
#include "runtime/base/limits.hpp"
#include "tests/sim/checkpoints.hpp"
#include "tests/sim/processes.hpp"
#include "tests/sim/world.hpp"

#include <cstdint>
#include <memory>
#include <vector>

/// What must hold whatever happens: the invariants of docs/architecture.md, one per source file
/// here. Each hears of everything and blames the first event that breaks its invariant.
namespace troupe::sim::checkers {

/// At most one world is ever proposed, and so sealed, under one generation number.
std::shared_ptr<observer> one_world_per_generation(world& w);

/// The ranks of a sealed world are a bijection onto 0 … world_size-1; those of a node are
/// contiguous.
std::shared_ptr<observer> ranks_are_dense(world& w);

/// A node that takes part in two worlds in a row keeps its group rank, and in a smaller one its
/// place in the order.
std::shared_ptr<observer> ranks_are_stable(world& w);

/// Every sealed world has a number of nodes that the job's options allow.
std::shared_ptr<observer> worlds_fit_the_sizes(world& w, const actors::world_sizes& sizes);

/// No training process runs under a generation other than its node's current one.
std::shared_ptr<observer> processes_follow_the_generation(world& w, const trainers& t);

/// A node that stands by has ended what it ran before.
std::shared_ptr<observer> standbys_are_idle(world& w, const trainers& t);

/// No generation starts anywhere before every member said Prepared for it and the world was
/// journalled.
std::shared_ptr<observer> start_after_prepared(world& w);

/// No more restarts are counted against a node than --max-restarts allows.
std::shared_ptr<observer> restarts_within_budget(world& w, std::uint32_t max_restarts);

/// A generation's failure is counted once, and the count grows by one each time.
std::shared_ptr<observer> failures_counted_once(world& w);

/// A launcher that has ended by itself leaves no process behind.
std::shared_ptr<observer> nothing_left_behind(world& w, const trainers& t);

/// Rank 0 starts beside an open store, and no node has two of them open.
std::shared_ptr<observer> rank_0_has_a_store(world& w);

/// Each question hears an answer in time, or that there is none.
std::shared_ptr<observer> questions_are_answered(world& w);

/// A host that was stopped, or cut off, for no longer than half of the lease in all is not taken
/// for dead.
std::shared_ptr<observer> pauses_are_forgiven(world& w, duration lease);

/// The master acts within the lease on a node of which nothing can be heard.
std::shared_ptr<observer> silence_is_noticed(world& w, duration lease);

/// Queues stay within runtime/base/limits.hpp.
std::shared_ptr<observer> queues_are_bounded(world& w);

/// No actor meets a broken invariant of its own, throws, or gets a message it does not know.
std::shared_ptr<observer> actors_are_sound(world& w);

/// The verdict, once recorded, is the only one, and nothing is started after it.
std::shared_ptr<observer> one_verdict(world& w);

/// A step is complete only if all ranks have saved it, no process is told so of another step, and
/// no node finishes before what its processes saved is finalized.
std::shared_ptr<observer> checkpoints_are_kept(world& w);

/// What a process was told is complete, or a load could have read, is still there and is what the
/// next load takes, unless a newer complete step exists or retention's rule removed it.
/// `one_directory`: of all nodes; else each has one of its own.
std::shared_ptr<observer> complete_steps_stay(world& w, bool one_directory, ckpt::retention keep);

/// People's files stay as they are. When no saver is at work at a place and nothing has failed
/// there since: the newest step that was completed is there, or a newer one; the tracker names it,
/// or a newer one; every file belongs to a step; and nothing is left of saves that have ended.
std::shared_ptr<observer> places_are_sound(world& w, checkpoints& of);

/// A save is reported lost, or its copies, only if something has gone wrong since it was asked for.
std::shared_ptr<observer> losses_have_a_cause(world& w, checkpoints& of);

/// A state of which all ranks know that other nodes hold it is what the next load takes, or a newer
/// one, unless more nodes of a group than its parity have lost their memory since, or the world is
/// another one, or a load has taken a newer state meanwhile.
std::shared_ptr<observer> held_states_stay(world& w);

/// Of two masters at the same time: a newer one's generations have higher numbers, so a node whose
/// numbers fall has obeyed a master that it knew to be the older one.
std::shared_ptr<observer> newest_master_commands(world& w);

/// What must hold under one master, but for places_are_sound and losses_have_a_cause, which look at
/// directories, and held_states_stay, for jobs that load.
std::vector<std::shared_ptr<observer>> all(world& w, const trainers& t, std::uint32_t max_restarts,
                                           const actors::world_sizes& sizes,
                                           duration lease = limits::lease,
                                           bool one_directory = true, ckpt::retention keep = {});

} // namespace troupe::sim::checkers
