// How recovery_core decides how large the next world is, and when no other node is waited for.
//
// Two costs stand against each other. A world that starts too early is interrupted again to become
// larger, and each time all workers start anew. A world that waits too long trains nothing. So each
// wait is for something that was seen: nodes that keep coming, a member that is away.

#include "actors/master/recovery/recovery_core.hpp"
#include "actors/words.hpp"
#include "runtime/base/generations.hpp"
#include "runtime/base/limits.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

using namespace messages;

/// Looked at whenever a node comes: cheap until there is something to decide.
/// Sorting all claims for each hello would cost a job of thousands of nodes more than it learns, so
/// the wait is asked about first.
void recovery_core::consider_proposing(effects& out, instant now) {
  const bool paused = ladder_.holds(now);
  if ((checking_ && !checking_->alone) || partings_.any())
    return;
  if (roster_.here() < sizes_.nodes_min)
    return not_enough(out, now);
  if (enough_since_ && roster_.here() < roster_.most_nodes() && waiting_for_more(now))
    return;
  auto present = roster_.claimants();
  const auto size = roster_.largest_world(present);
  // Enough nodes may still be no world: a unit is not whole (--node_unit), or the elasticity config
  // has no size for so few.
  TROUPE_RARE_IF(size == 0, "planner: MIN nodes are here and make no whole unit");
  if (size == 0)
    return not_enough(out, now);
  const bool complete = size >= roster_.most_nodes();
  if (!enough_since_) {
    enough_since_ = now;
    waiting_.end();
    if (!complete && waiting_for_more(now))
      out.push_back(note{waiting_for_more_in_words(now)});
  }
  const bool due = !paused && (!waiting_for_more(now) || (complete && !gathers_losses()));
  if (due && !checks_first(out, now, present))
    propose(out, now, std::move(present), size);
}

recovery_core::effects recovery_core::topology_known(instant now, const topology_answer& answer) {
  effects out;
  if (phase_ == phase::concluded)
    return out;
  out.push_back(note{topology_.known(answer)});
  if (phase_ == phase::gathering)
    consider_proposing(out, now);
  check();
  return out;
}

recovery_core::effects recovery_core::supplied(instant now, const ports::cluster::supply& supply) {
  effects out;
  ladder_.supplied(supply);
  if (phase_ == phase::gathering)
    consider_proposing(out, now);
  check();
  return out;
}

/// Nodes that were enough are so no more. The last call begins anew when they are again, and the
/// user is reminded from now on that the job waits.
void recovery_core::not_enough(effects& out, instant now) {
  if (enough_since_)
    waiting_.begin(now);
  enough_since_.reset();
  consider_waiting_in_vain(out, now);
}

/// What a rack's end costs is one new generation. Without this wait each proposal would include
/// nodes that are gone and not lost yet, or standbys from the same rack, and each would be stopped
/// by the next loss.
bool recovery_core::gathers_losses() const {
  return !first_world_ && roster_.losses_come_together(phase_since_ - options_.lease);
}

bool recovery_core::waiting_for_more(instant now) const {
  const auto until = settled_at();
  return !until || now < *until;
}

/// Two kinds of waiting. Before the first world nothing says how many nodes will come, so it waits
/// until they stop coming. Later worlds wait only for nodes that were seen: a member that was lost
/// comes back as a newcomer, if at all, and one that never came is not expected.
std::optional<instant> recovery_core::settled_at() const {
  if (first_world_) {
    // Each arrival prolongs the wait. `settle_most` bounds it, since nodes that trickle in would
    // else hold up those that are here for as long as they come.
    const auto settled =
        sizes_.last_call
            ? *enough_since_ + *sizes_.last_call
            : std::min(std::max(roster_.last_arrival(), *enough_since_) + sizes_.settle,
                       *enough_since_ + sizes_.settle_most);
    // A master that lost its journal takes the second world for the first. Without this wait its
    // nodes, which dial one after the other, would train as a smaller world and be interrupted to
    // grow.
    return std::max(settled, others_come_until_.value_or(settled));
  }
  // No time bounds this here: membership says soon that the node is back or lost. A world without
  // it would be interrupted by its return.
  const bool away = roster_.a_member_is_away();
  TROUPE_RARE_IF(away, "planner: the next world waits for a member that is away");
  if (away)
    return std::nullopt;
  // All members are here or lost. Only if a node has come since, others may be about to; and only
  // if several were lost, others may follow.
  auto until = *enough_since_;
  const bool came = roster_.last_arrival() > phase_since_;
  TROUPE_RARE_IF(came, "planner: a node comes while the next world is gathered");
  if (came)
    until =
        std::min(roster_.last_arrival() + sizes_.growth.quiet, *enough_since_ + sizes_.growth.most);
  TROUPE_RARE_IF(gathers_losses(), "planner: several nodes are lost, and others may follow");
  // The bound is what silence takes to be noticed at all: what shows later has another cause.
  if (gathers_losses())
    until = std::max(until,
                     std::min(roster_.others_show_until(sizes_.growth.quiet,
                                                        options_.lease / limits::beats_in_a_lease),
                              phase_since_ + options_.lease));
  return until;
}

void recovery_core::propose(effects& out, instant now, std::vector<candidate> present,
                            std::uint32_t size) {
  if (waits_for_topology())
    return;
  // Before `become_forming`, whose record carries the sum: a later master counts on from there.
  if (const auto waited_for = ladder_.take_waited(); waited_for > 0) {
    TROUPE_RARE("planner: a relaunch is counted");
    out.push_back(note{relaunched_in_words(waited_for)});
  }
  const std::vector<candidate> taken(present.begin(), present.begin() + size);
  // By the last world that was sealed: proposals that came to nothing have moved no node.
  auto arranged = topology_.arrange(taken, roster_.last_group_ranks());
  world_ = std::move(arranged.seats);
  if (arranged.told)
    out.push_back(note{std::move(*arranged.told)});
  for (auto& line : arranged.list)
    out.push_back(note{std::move(line)});
  for (const auto& s : world_) {
    members_.emplace(s.node, s.which);
    const bool stood_by = standing_by_.erase(s.node) > 0;
    TROUPE_RARE_IF(stood_by, "planner: a node that stood by takes a place");
  }
  // The standbys are told last, since what they are told names the new generation. Before it is
  // known which nodes take part, no node can be told that it does not.
  become_forming(out, now);
  tell_standbys(out, present);
}

// ---- a generation is up ----
// A newcomer beside a world that cannot become larger stands by at once. Else it waits until no
// other node comes, and then the world is stopped for all of them together, or they stand by.

/// Also a standby that is here with a new link: what was on the old one may be lost, so it is told
/// again.
void recovery_core::take_newcomer(effects& out, instant now, const candidate& who) {
  TROUPE_RARE_IF(phase_ == phase::forming, "planner: a node comes while a generation is formed");
  TROUPE_RARE_IF(phase_ == phase::ending, "planner: a node comes while a generation ends");
  out.push_back(note{waits_in_words(who.node)});
  standing_by_.erase(who.node);
  if (world_.size() == sizes_.nodes_max)
    tell_standbys(out, {who}); // the world cannot become larger, whatever else comes
  else
    growth_.newcomer(now);
  check_newcomers(out);
}

/// Not while a member is away: its return or loss comes first.
/// If it is lost, the world ends anyway and takes the newcomers in for nothing. In any other phase
/// than running nothing has to be stopped for them.
std::optional<instant> recovery_core::growth_due() const {
  if (phase_ != phase::running || roster_.any_away())
    return std::nullopt;
  return growth_.due();
}

/// Worth a restart of all workers, unless part of the work is done already.
/// A node that has finished would train again in the larger world.
void recovery_core::consider_growing(effects& out, instant now) {
  // They are dealt with whatever comes of it: else the wait would be over again at once, for ever.
  growth_.settled();
  const auto all = worth_a_stop(roster_.claimants());
  const auto size = roster_.largest_world(all);
  TROUPE_RARE_IF(size <= world_.size(), "planner: newcomers make the world no larger");
  if (size <= world_.size())
    // Only now is it certain that they do not make the world larger, as a unit or by an elastic
    // size.
    return tell_standbys(out, all);
  if (!finished_.empty())
    return;
  const auto more = size - world_.size();
  TROUPE_RARE("planner: a world that runs is stopped to grow");
  end_as_planned(out, now, fmt::format("{} more node{} here", more, more == 1 ? " is" : "s are"));
}

/// Once for each link. A launcher that hears nothing looks to its user like one that hangs.
void recovery_core::tell_standbys(effects& out, const std::vector<candidate>& all) {
  std::vector<node_name> standbys;
  for (const auto& c : all)
    if (!is_member(c.node) && standing_by_.insert(c.node).second)
      standbys.push_back(c.node);
  if (standbys.empty())
    return;
  const auto why = standby_in_words(all.size());
  out.push_back(
      direct{standbys, author_.write<StandBy>(current_, [&](auto b) { b.setReason(why); }).any()});
  out.push_back(note{standing_by_in_words(standbys, why)});
}

/// A member that is cut off ends its workers if others may train in its place by then. Before it
/// has heard a word it goes by the size that it was told (--nnodes), and it may have been told
/// none. Without a word a job of fixed size with a standby would train a rank twice, for as long as
/// a node trains on without its master; and a node of a world that has become too small to spare it
/// would stop although no other can train in its place.
void recovery_core::tell_whether_dispensable(effects& out) {
  if (phase_ != phase::running)
    return;
  // Of the job as it is now, and not of its options: standbys come and go while a world runs.
  const bool others_suffice = roster_.one_is_dispensable();
  const bool may_shrink = started_with_.nodes_min != started_with_.nodes_max;
  // Of a job of fixed size none takes that for granted, whatever it was told.
  if (others_suffice == said_dispensable_ || (!said_dispensable_ && !may_shrink && !others_suffice))
    return;
  TROUPE_RARE_IF(others_suffice, "planner: members hear that others could take their place");
  TROUPE_RARE_IF(!others_suffice, "planner: members hear that none could take their place");
  said_dispensable_ = others_suffice;
  std::vector<node_name> members;
  for (const auto& [node, which] : members_)
    members.push_back(node);
  repeat_whether_dispensable(out, std::move(members));
}

/// A node forgets this at each welcome and at each Prepare: it may be another master's word, or
/// about another world. So a member that is back hears it again.
void recovery_core::repeat_whether_dispensable(effects& out, std::vector<node_name> members) {
  // Nothing was said yet: then what a node takes for granted is right.
  if (phase_ != phase::running || !said_dispensable_)
    return;
  // One message for all of them, so a world of thousands costs one.
  const auto said =
      author_.write<Dispensable>(current_, [&](auto b) { b.setOthersSuffice(*said_dispensable_); });
  out.push_back(direct{std::move(members), said.any()});
}

/// A node that was away when its generation was stopped has not heard of it, and its workers may
/// wait for their peers for ever.
void recovery_core::stop_what_has_ended(effects& out, const node_name& node,
                                        NodeState::Reader state) {
  // A number beyond this master's is one that the journal has lost. The next generation is above
  // it, and its Prepare ends what the node runs.
  const generation its{state.getGeneration()};
  if (its > current_ || state.getPhase() != NodeState::Phase::RUNNING)
    return;
  // About its generation and not the current one: the node drops what is not about what it runs.
  const auto why = fmt::format("generation {} ended while the node was away", count_of(its));
  out.push_back(direct{{node}, author_.write<Stop>(its, [&](auto b) { b.setReason(why); }).any()});
}

// ---- giving up ----

/// Enough nodes may be here and wait, for a last call or for a member's return: that is no reason
/// to give up.
void recovery_core::consider_giving_up(effects& out, instant now) {
  if (enough_since_ || now - phase_since_ < sizes_.join_timeout)
    return;
  conclude(out, now, ending::failed,
           fmt::format("only {} of at least {} nodes joined within {}", roster_.here(),
                       sizes_.nodes_min, troupe::in_words(sizes_.join_timeout)));
}

/// A first world may be waited for: its nodes replace none. But not where the cluster says that it
/// gives no further one: the user would find a job that runs, holds machines and trains nothing.
void recovery_core::consider_waiting_in_vain(effects& out, instant now) {
  const bool is_first = roster_.last_group_ranks().empty();
  auto why = is_first ? std::nullopt : ladder_.wait_for(roster_.missing());
  if (!why) {
    why = ladder_.no_more(roster_.least(), sizes_.nodes_max);
    TROUPE_RARE_IF(why, "planner: the cluster gives no further node, and the job ends");
  }
  if (why)
    conclude(out, now, ending::failed,
             fmt::format("{} of at least {} nodes are {}, and {}", roster_.size(), sizes_.nodes_min,
                         is_first ? "here" : "left", *why));
}

} // namespace troupe::actors
