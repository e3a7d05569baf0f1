// What recovery_core makes of the journal when it begins anew.
//
// The earlier planner was at one of three places: the verdict was on record, a generation was up,
// or none was. In the second case training most likely goes on, and must not notice anything.

#include "actors/master/recovery/recovery_core.hpp"
#include "messages/conversations.hpp"

#include <algorithm>
#include <utility>

namespace troupe::actors {

using namespace messages;

/// Records are facts, each of which replaces an earlier one of its kind; so compaction may drop
/// what was replaced, and reading a record twice changes nothing. What has no record is learned
/// from the nodes: which are here, what they run, and that a generation has ended without a counted
/// restart.
recovery_core::effects recovery_core::recall(instant now, const std::vector<any_msg>& history) {
  effects out;
  // Set only as long as the last record says that a generation is up.
  std::optional<msg<Start>> start;
  std::optional<verdict> decided;
  const auto take =
      receivers{[&](const msg<GenerationProposed>& m) {
                  auto proposed = m.read();
                  // Only a generation that has ended is followed by a new number. The number itself
                  // is burnt, whether or not any node has heard of it.
                  current_ = std::max(current_, generation{proposed->getGeneration()});
                  ladder_.recall_relaunches(proposed->getRelaunches());
                  start.reset();
                },
                [&](const msg<GenerationSealed>& m) {
                  auto sealed = m.read();
                  take_world(sealed->getWorld());
                  // Written anew, under the term of this master: a node that was prepared and has
                  // missed the Start of the earlier master would not obey a message of an older
                  // term.
                  start = author_.write<Start>(current_, [&](auto b) {
                    b.setStoreAddress(sealed->getStoreAddress());
                    b.setStorePort(sealed->getStorePort());
                    b.setStoreHosted(sealed->getStoreHosted());
                  });
                },
                [&](const msg<RestartCounted>& m) {
                  ladder_.recall(*m.read());
                  // A counted restart is the judgement of a generation, so that generation has
                  // ended.
                  start.reset();
                },
                [&](const msg<Concluded>& m) {
                  auto recorded = m.read();
                  decided = verdict{recorded->getSuccess(), recorded->getReason().cStr(),
                                    recorded->getExitCode()};
                },
                [&](const msg<SizesChanged>& m) {
                  auto sizes = m.read();
                  resize(sizes->getNodesMin(), sizes->getNodesMax());
                  plans_.recall(*sizes);
                },
                [](const msg<JobOptionsTaken>&) { /* this master was begun with them */ },
                [](const msg<FarewellEnded>&) { /* said to the journal's next opening */ },
                [](const msg<Opened>&) { /* retired */ }};
  // What was proposed before the verdict came through is of no use any more.
  for (auto entry = history.begin(); entry != history.end() && !decided; ++entry)
    route(*entry, journal_records{}, take);
  // No node has a link yet; the members of the last world are known to have been there.
  // Also when that world has ended. Else the first node to be back could be a world of MIN nodes by
  // itself, and the others would come as newcomers and interrupt it.
  roster_.remember_world(world_);
  for (const auto& s : world_)
    roster_.expect(candidate{s.node, s.address, s.slots, {}, 0, sizes_.stop_within, {}, s.which});
  first_world_ = world_.empty();
  // The join timeout begins anew: the nodes were sent back to the start by the master, not by a
  // fault of theirs.
  phase_since_ = now;
  // A verdict has nodes to wait for even if none is known: those that dial still, and must hear it.
  if (roster_.size() > 0 || decided)
    recalled_at_ = now;
  // First of all effects: `job` counts restarts on from these, and a generation may start next.
  if (!ladder_.used().empty())
    out.push_back(recall_restarts{ladder_.used()});
  // The verdict is stronger than any generation that the records leave open.
  TROUPE_RARE_IF(decided, "planner: a verdict is recalled");
  TROUPE_RARE_IF(!decided && start, "planner: a generation that runs is recalled");
  TROUPE_RARE_IF(!decided && !start && current_ != generation{},
                 "planner: a restarted master finds no generation up");
  if (decided)
    recall_verdict(out, *decided);
  else if (start)
    recall_generation(out, now, *start);
  else
    forget_generation();
  check();
  return out;
}

/// Announced again: the earlier planner may not have come to that.
/// The record has no failures, so a node that comes now hears the reason alone.
void recovery_core::recall_verdict(effects& out, const verdict& v) {
  phase_.become(phase::concluded);
  waiting_.end();
  conclusion_ = author_
                    .write<Conclude>(current_,
                                     [&](auto b) {
                                       b.setSuccess(v.success);
                                       b.setReason(v.reason);
                                       b.setExitCode(v.exit_code);
                                     })
                    .any();
  out.push_back(v);
}

/// It may well run: its members say so when they are back.
/// It may also have ended: a loss or a newcomer leaves no record, and the earlier master may have
/// fallen before the next number. Its members then hear from their nodes that nothing of it is
/// left.
void recovery_core::recall_generation(effects& out, instant now, const msg<Start>& start) {
  was_sealed_ = in_the_tree_ = true;
  phase_.become(phase::running);
  waiting_.end();
  // When it was sealed is not in the journal, so progress counts from here on. An end soon after
  // the restart of a master counts as one without progress.
  works_since_ = now;
  // So the age of a failure is not bounded by it: it may have shown while no master was there.
  sealed_at_.reset();
  growth_.generation_begins(now);
  for (const auto& [node, which] : members_)
    away_.emplace(node, std::nullopt);
  out.push_back(start_generation{world_message(now), owners_message(), start, members_may_take(),
                                 std::nullopt});
}

/// A concluded job only has its verdict left to tell, to nodes that dial for it.
/// That time is longer than the longest rest between two dials.
instant recovery_core::recall_until() const {
  return *recalled_at_ +
         (phase_ == phase::concluded ? sizes_.recall_concluded_within : sizes_.recall_within);
}

/// Membership does not know the nodes that have not come to this master, so no NodeLost of its
/// would ever end the wait. The planner says it to itself.
void recovery_core::stop_waiting_for_return(effects& out, instant now) {
  recalled_at_.reset();
  if (phase_ == phase::concluded) {
    // Nodes that dial have found this master by now and heard the verdict.
    out.push_back(announce_end{});
    return;
  }
  // As losses like any other: a standby may take the place, and none of them costs a restart.
  for (const auto& node : roster_.all_away()) {
    // One that was back, and is away again, is membership's to judge.
    if (const auto known = away_.find(node); known != away_.end() && known->second)
      continue;
    TROUPE_RARE("planner: a node does not come back to a restarted master");
    const auto lost = author_.write<NodeLost>(current_, [&](auto b) {
      b.setNode(node);
      b.setReason("it did not come back to the restarted master");
    });
    for (auto& e : node_lost(now, lost))
      out.push_back(std::move(e));
  }
}

/// Its old node supervisor is gone, and membership was not there to see it go.
void recovery_core::replace_member(effects& out, instant now, const node_name& node) {
  TROUPE_RARE("planner: a name has passed on while no master was there");
  const auto lost = author_.write<NodeLost>(current_, [&](auto b) {
    b.setNode(node);
    b.setReason("a newer node supervisor of this name is here");
  });
  for (auto& e : node_lost(now, lost))
    out.push_back(std::move(e));
}

void recovery_core::take_world(World::Reader world) {
  current_ = generation{world.getGeneration()};
  ladder_.recall_count(world.getRestartCount());
  world_.clear();
  members_.clear();
  for (const auto m : world.getMembers()) {
    world_.push_back(seat{m.getNode().cStr(), m.getAddress().cStr(), m.getSlots(), m.getGroupRank(),
                          m.getFirstRank(), 0, 0, incarnation{m.getIncarnation()},
                          m.getMasterIndex(), m.getBulkPort()});
    members_.emplace(m.getNode().cStr(), incarnation{m.getIncarnation()});
  }
}

} // namespace troupe::actors
