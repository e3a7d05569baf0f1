// What recovery_core says: to the actors of a generation, and to people.

#include "actors/master/recovery/recovery_core.hpp"
#include "actors/words.hpp"
#include "messages/node_names.hpp"
#include "runtime/base/generations.hpp"

#include <fmt/format.h>

namespace troupe::actors {

using namespace messages;

msg<WorldProposed> recovery_core::world_message(instant now) {
  return author_.write<WorldProposed>(current_, [&](auto b) {
    write_world(b.initWorld(), failed_at_ ? std::optional(now - *failed_at_) : std::nullopt);
  });
}

std::optional<msg<Sealed>> recovery_core::running_world() {
  if (phase_ != phase::running)
    return std::nullopt;
  return author_.write<Sealed>(current_, [&](auto b) { write_world(b.initWorld(), std::nullopt); });
}

void recovery_core::write_world(World::Builder out, std::optional<duration> since_failure) const {
  out.setGeneration(current_.value);
  out.setRestartCount(ladder_.count());
  if (since_failure)
    out.setSinceFailureMs(static_cast<std::uint64_t>(milliseconds_of(*since_failure)) + 1);
  out.setWorldSize(world_.back().first_rank + world_.back().slots);
  auto members = out.initMembers(static_cast<unsigned>(world_.size()));
  for (unsigned i = 0; i < world_.size(); ++i) {
    members[i].setNode(world_[i].node);
    members[i].setAddress(world_[i].address);
    members[i].setSlots(world_[i].slots);
    members[i].setGroupRank(world_[i].group_rank);
    members[i].setFirstRank(world_[i].first_rank);
    members[i].setFirstRoleRank(world_[i].first_role_rank);
    members[i].setRoleWorldSize(world_[i].role_world_size);
    members[i].setIncarnation(world_[i].which.value);
    members[i].setMasterIndex(world_[i].master_index);
    members[i].setBulkPort(world_[i].bulk_port);
  }
}

/// Names in full would be three times as much, in a message that each node of a large world gets.
msg<RankOwners> recovery_core::owners_message() {
  return author_.write<RankOwners>(current_, [&](auto b) {
    auto nodes = b.initNodes(static_cast<unsigned>(world_.size()));
    auto slots = b.initSlots(static_cast<unsigned>(world_.size()));
    for (unsigned i = 0; i < world_.size(); ++i) {
      nodes.set(i, fingerprint(world_[i].node));
      slots.set(i, static_cast<std::uint16_t>(world_[i].slots));
    }
  });
}

log::event recovery_core::joined_in_words(const node_name& node) const {
  // A screen has room for a few dozen; in a larger job they are for a closer look. An only node
  // says nothing new with it.
  constexpr std::uint32_t told = 64;
  const bool shown = sizes_.nodes_max > 1 && sizes_.nodes_max <= told;
  return {shown ? log::level::notice : log::level::info,
          "node_joined",
          fmt::format("node {} joined ({} of {})", node, roster_.size(), sizes_.nodes_max),
          {{"node", node}, {"present", static_cast<std::int64_t>(roster_.size())}}};
}

/// The phase is said because it tells how soon the node takes part. Of a world that cannot become
/// larger the node hears next that it stands by, and why.
log::event recovery_core::waits_in_words(const node_name& node) const {
  return {log::level::notice,
          "node_waits",
          fmt::format("node {} joined while generation {} is {}{}", node, count_of(current_),
                      phase_ == phase::forming ? "being formed"
                                               : (phase_ == phase::ending ? "ending" : "running"),
                      world_.size() == sizes_.nodes_max ? "" : "; the next one may include it"),
          {{"node", node}}};
}

/// Told once, when the wait begins: a user whose nodes are here must see that the job has not hung.
log::event recovery_core::waiting_for_more_in_words(instant now) const {
  const auto until = settled_at();
  const auto how =
      !first_world_ ? std::string("when the other nodes are back or lost")
      : others_come_until_ && until == others_come_until_
          ? fmt::format("in {} unless the others come first; they ran before this master began, "
                        "and may be on their way",
                        troupe::in_words(*until - now))
      : sizes_.last_call
          ? fmt::format("in {} unless the others come first", troupe::in_words(*sizes_.last_call))
          : fmt::format("when no node has come for {}, within {}", troupe::in_words(sizes_.settle),
                        troupe::in_words(sizes_.settle_most));
  return {log::level::notice,
          "last_call",
          fmt::format("{} of at most {} nodes are here, which is enough: starting {}",
                      roster_.here(), sizes_.nodes_max, how),
          {{"present", static_cast<std::int64_t>(roster_.here())}}};
}

/// A budget is spent: the user hears of it before it is used up.
log::event recovery_core::relaunched_in_words(std::uint32_t waited_for) const {
  return {log::level::notice,
          "nodes_relaunched",
          fmt::format("the job had to wait for {} to be replaced{}", counted(waited_for, "node"),
                      sizes_.relaunches_max
                          ? fmt::format("; {} of {} relaunches are used up (--node-relaunches)",
                                        ladder_.relaunches(), *sizes_.relaunches_max)
                          : ""),
          {{"relaunches", static_cast<std::int64_t>(ladder_.relaunches())}}};
}

/// What a user asks after a failure is how long training stood still. It is told in two parts,
/// because each has another cause: a node that was slow to stop and to get ready, or slow to start
/// programs.
log::event recovery_core::started_in_words(instant now) const {
  log::event e{log::level::notice,
               "training_started",
               "all workers run (they were started already)",
               {{"generation", static_cast<std::int64_t>(current_.value)}}};
  // Sealed by an earlier master, at a time that is not on record.
  if (!sealed_at_)
    return e;
  e.fields.emplace_back("start_ms", milliseconds_of(now - *sealed_at_));
  e.text = fmt::format("all workers are started, {} after the generation was formed",
                       troupe::in_words(now - *sealed_at_));
  if (!failed_at_)
    return e;
  e.name = "training_again";
  e.fields.emplace_back("since_failure_ms", milliseconds_of(now - *failed_at_));
  e.text =
      fmt::format("the workers run again, {} after the failure (forming the generation took {}, "
                  "starting the workers {})",
                  troupe::in_words(now - *failed_at_), troupe::in_words(*sealed_at_ - *failed_at_),
                  troupe::in_words(now - *sealed_at_));
  return e;
}

/// Says what the wait is for.
/// And when it ends by itself: a user who sees how much time is left need not guess what to do.
log::event recovery_core::reminder_in_words(instant now) const {
  const auto waited = troupe::in_words(waiting_.waited(now));
  const auto left = sizes_.join_timeout - (now - phase_since_);
  const auto& suspects = roster_.suspects();
  return {log::level::notice,
          "still_waiting",
          fmt::format("{} of at least {} nodes are here after {}{}; the job ends in {} unless more "
                      "join (start a launcher on another node)",
                      roster_.here(), sizes_.nodes_min, waited,
                      suspects.empty() ? ""
                                       : fmt::format(", beside {} that must be checked with others",
                                                     counted(suspects.size(), "node")),
                      troupe::in_words(left)),
          {{"waited_ms", milliseconds_of(waiting_.waited(now))}}};
}

/// Names the option that leaves the node over: without it a user takes a waiting node for a fault.
std::string recovery_core::standby_in_words(std::size_t present) const {
  const auto nodes = counted(world_.size(), "node");
  // Members may be away: how many are here says nothing.
  if (world_.size() == sizes_.nodes_max)
    return fmt::format("generation {} has {}, the most there can be (--nnodes)", count_of(current_),
                       nodes);
  return fmt::format("generation {} has {} of the {} that are here, {}", count_of(current_), nodes,
                     present,
                     sizes_.elastic ? "the largest world the elasticity config allows"
                                    : "a whole number of units (--node_unit)");
}

log::event recovery_core::standing_by_in_words(const std::vector<node_name>& standbys,
                                               const std::string& why) const {
  return {log::level::notice,
          "standing_by",
          fmt::format("{} stand{} by: {}", few_of(standbys), standbys.size() == 1 ? "s" : "", why),
          {{"nodes", static_cast<std::int64_t>(standbys.size())}}};
}

/// What `actor-shell tree` shows beside the planner.
std::string recovery_core::in_words() const {
  switch (phase_) {
  case phase::gathering:
    return fmt::format("gathering: {} of {} nodes present{}", roster_.size(), sizes_.nodes_max,
                       checking_ ? ", being checked" : "");
  case phase::forming:
    return fmt::format("generation {} of {} is being formed", count_of(current_),
                       counted(world_.size(), "node"));
  case phase::running:
    return fmt::format("generation {} runs on {}, {} finished; {}{}", count_of(current_),
                       counted(world_.size(), "node"), finished_.size(), ladder_.in_words(),
                       account_.in_words());
  case phase::ending:
    return fmt::format("generation {} ends{}", count_of(current_),
                       failures_.empty() ? "" : ": " + failures_.root_cause_in_words());
  case phase::concluded:
    return "concluded";
  }
  return {};
}

} // namespace troupe::actors
