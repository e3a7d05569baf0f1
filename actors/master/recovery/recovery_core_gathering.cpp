// How recovery_core decides how large the next world is, and when no other node is waited for.

#include "actors/master/recovery/recovery_core.hpp"
#include "actors/words.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

using namespace messages;

/// Looked at whenever a node comes: cheap until there is something to decide.
void recovery_core::consider_proposing(effects& out, instant now) {
  if (roster_.here() < sizes_.nodes_min)
    return not_enough(out, now);
  if (enough_since_ && roster_.here() < roster_.most_nodes() && settling(now))
    return;
  auto present = roster_.claimants();
  const auto size = roster_.largest_world(present);
  if (size == 0)
    return not_enough(out, now);
  const bool complete = size >= roster_.most_nodes();
  if (!enough_since_) {
    enough_since_ = now;
    waiting_.end();
    if (!complete && settling(now))
      out.push_back(note{settling_in_words()});
  }
  if (complete || !settling(now))
    propose(out, now, std::move(present), size);
}

void recovery_core::not_enough(effects& out, instant now) {
  if (enough_since_)
    waiting_.begin(now);
  enough_since_.reset();
  consider_relaunches(out, now);
}

bool recovery_core::settling(instant now) const {
  const auto until = settled_at();
  return !until || now < *until;
}

std::optional<instant> recovery_core::settled_at() const {
  if (first_world_) {
    const auto settled =
        sizes_.last_call
            ? *enough_since_ + *sizes_.last_call
            : std::min(std::max(roster_.last_arrival(), *enough_since_) + sizes_.settle,
                       *enough_since_ + sizes_.settle_most);
    return std::max(settled, others_come_until_.value_or(settled));
  }
  if (roster_.a_member_is_away())
    return std::nullopt;
  // All members are here or lost. Only if a node has come since, others may be about to.
  if (roster_.last_arrival() > phase_since_)
    return std::min(roster_.last_arrival() + sizes_.growth.quiet,
                    *enough_since_ + sizes_.growth.most);
  return *enough_since_;
}

void recovery_core::propose(effects& out, instant now, std::vector<candidate> present,
                            std::uint32_t size) {
  if (waited_for_ > 0) {
    relaunches_ += waited_for_;
    out.push_back(note{relaunched_in_words()});
  }
  const std::vector<candidate> taken(present.begin(), present.begin() + size);
  world_ = assign_ranks(taken, roster_.last_group_ranks());
  for (const auto& s : world_) {
    members_.emplace(s.node, s.which);
    standing_by_.erase(s.node);
  }
  become_forming(out, now);
  tell_spares(out, present);
}

// ---- a generation is up ----

void recovery_core::take_newcomer(effects& out, instant now, const candidate& who) {
  out.push_back(note{waits_in_words(who.node)});
  standing_by_.erase(who.node);
  if (world_.size() == sizes_.nodes_max)
    tell_spares(out, {who}); // the world cannot become larger, whatever else comes
  else
    growth_.newcomer(now);
}

/// Not while a member is away: its return or loss comes first.
std::optional<instant> recovery_core::growth_due() const {
  if (phase_ != phase::running || roster_.any_away())
    return std::nullopt;
  return growth_.due();
}

/// Worth a restart of all workers, unless part of the work is done already.
void recovery_core::consider_growing(effects& out, instant now) {
  growth_.settled();
  const auto all = roster_.claimants();
  const auto size = roster_.largest_world(all);
  if (size <= world_.size())
    return tell_spares(out, all);
  if (!finished_.empty())
    return;
  const auto more = size - world_.size();
  stopped_for_ = fmt::format("{} more node{} here", more, more == 1 ? " is" : "s are");
  out.push_back(stop_generation{current_, *stopped_for_});
  become_ending(now);
}

void recovery_core::tell_spares(effects& out, const std::vector<candidate>& all) {
  std::vector<node_name> spares;
  for (const auto& c : all)
    if (!is_member(c.node) && standing_by_.insert(c.node).second)
      spares.push_back(c.node);
  if (spares.empty())
    return;
  const auto why = spare_in_words(all.size());
  out.push_back(
      direct{spares, author_.write<StandBy>(current_, [&](auto b) { b.setReason(why); }).any()});
  out.push_back(note{standing_by_in_words(spares, why)});
}

/// A member that is cut off ends its workers if others may train in its place by then. Of a job
/// that may shrink a node takes that for granted, and of one that may not it does not.
void recovery_core::tell_whether_dispensable(effects& out) {
  if (phase_ != phase::running)
    return;
  const bool others_suffice = roster_.one_is_dispensable();
  const bool may_shrink = sizes_.nodes_min != sizes_.nodes_max;
  if (others_suffice == said_dispensable_.value_or(may_shrink))
    return;
  said_dispensable_ = others_suffice;
  std::vector<node_name> members;
  for (const auto& [node, which] : members_)
    members.push_back(node);
  repeat_whether_dispensable(out, std::move(members));
}

void recovery_core::repeat_whether_dispensable(effects& out, std::vector<node_name> members) {
  if (phase_ != phase::running || !said_dispensable_)
    return;
  const auto said =
      author_.write<Dispensable>(current_, [&](auto b) { b.setOthersSuffice(*said_dispensable_); });
  out.push_back(direct{std::move(members), said.any()});
}

/// A node that was away when its generation was stopped has not heard of it, and its workers may
/// wait for their peers for ever.
void recovery_core::stop_what_has_ended(effects& out, const node_name& node,
                                        NodeState::Reader state) {
  const generation its{state.getGeneration()};
  if (its > current_ || state.getPhase() != NodeState::Phase::RUNNING)
    return;
  const auto why = fmt::format("generation {} ended while the node was away", its.value);
  out.push_back(direct{{node}, author_.write<Stop>(its, [&](auto b) { b.setReason(why); }).any()});
}

// ---- giving up ----

void recovery_core::consider_giving_up(effects& out, instant now) {
  if (enough_since_ || now - phase_since_ < sizes_.join_timeout)
    return;
  conclude(out, now, false,
           fmt::format("only {} of at least {} nodes joined within {}", roster_.here(),
                       sizes_.nodes_min, troupe::in_words(sizes_.join_timeout)));
}

void recovery_core::consider_relaunches(effects& out, instant now) {
  if (roster_.last_group_ranks().empty())
    return;
  waited_for_ = std::max(waited_for_, roster_.missing());
  if (!sizes_.relaunches_max || relaunches_ + waited_for_ <= *sizes_.relaunches_max)
    return;
  conclude(out, now, false,
           fmt::format("{} of at least {} nodes are left, and {} (--node-relaunches)",
                       roster_.size(), sizes_.nodes_min,
                       *sizes_.relaunches_max == 0
                           ? "none may be waited for"
                           : fmt::format("{} of {} relaunches are used up", relaunches_,
                                         *sizes_.relaunches_max)));
}

} // namespace troupe::actors
