#include "actors/master/recovery/recovery_core.hpp"

#include "runtime/base/generations.hpp"
#include "runtime/base/invariant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

using namespace messages;

recovery_core::recovery_core(rendezvous_options sizes, recovery_options options,
                             messages::author author, instant now)
    : sizes_(std::move(sizes)), started_with_(sizes_), options_(std::move(options)),
      author_(std::move(author)), phase_since_(now), began_(now), roster_(sizes_),
      growth_(sizes_.growth), topology_(sizes_.topology, sizes_.unit, now),
      ladder_({options_.max_restarts.value_or(0), options_.job_restarts,
               options_.without_progress_max, sizes_.relaunches_max, options_.progress_after,
               options_.start_pause, options_.cluster_replaces}) {
  waiting_.begin(now);
}

// ---- nodes ----

recovery_core::effects recovery_core::node_present(instant now, const msg<NodePresent>& m) {
  effects out;
  auto present = m.read();
  const node_name node = present->getNode().cStr();
  if (phase_ == phase::concluded) {
    // It was not here when the verdict was told, and would wait for a next world for ever.
    TROUPE_RARE("planner: a node comes after the verdict");
    out.push_back(direct{{node}, conclusion_});
    return out;
  }
  const incarnation which{present->getIncarnation()};
  if (const auto leaving = partings_.reason_of(node, which)) {
    ask_to_leave(out, {node}, generation{present->getState().getGeneration()}, node, *leaving);
    return out;
  }
  partings_.end(node);
  candidate who{node,
                present->getAddress().cStr(),
                present->getSlots(),
                std::nullopt,
                0,
                sizes_.stop_within,
                present->getWorkerRole().cStr(),
                which,
                present->getBulkPort()};
  for (const auto name : present->getSwitches())
    who.switches.emplace_back(name.cStr());
  for (const auto name : present->getMachine())
    who.machine.emplace_back(name.cStr());
  if (const auto said = present->getStopWithinMs(); said != 0)
    who.stop_within = std::chrono::milliseconds(said);
  if (present->getWantedRank() >= 0)
    who.wanted_rank = static_cast<std::uint32_t>(present->getWantedRank());
  who.rank_is_found = present->getRankIsFound();
  if (!options_.max_restarts)
    ladder_.allow_at_least(std::min(present->getMaxRestarts(), limits::restarts_max));
  if (const auto why = roster_.validation_error(who); !why.empty()) {
    out.push_back(evict{node, why, false});
    return out;
  }
  // The name passed on while no master was there, so membership has no NodeLost to say. An old
  // journal does not know incarnations: then the name alone decides.
  if (is_up() && is_member(node) && members_.at(node) != incarnation{} &&
      members_.at(node) != who.which)
    replace_member(out, now, node);
  if (roster_.present(now, who))
    roster_.forget_suspicions();
  // One that trains works, and its devices are not free to be probed.
  if (present->getState().getPhase() == NodeState::Phase::RUNNING)
    roster_.set_standing(node, who.which, node_standing::good);
  if (const generation its{present->getState().getGeneration()};
      first_world_ && its > current_ && !others_come_until_)
    others_come_until_ = now + sizes_.recall_within;
  newest_heard_ = std::max(newest_heard_, generation{present->getState().getGeneration()});
  if (phase_ == phase::gathering) {
    out.push_back(note{joined_in_words(node)});
    consider_proposing(out, now);
    // It may run an older generation, and take no part in the one that is formed now.
    if (!is_member(node))
      stop_what_has_ended(out, node, present->getState());
  } else if (is_member(node) && lost_.count(node) == 0) {
    away_.erase(node);
    // An earlier planner knew of the standbys that wait.
    if (roster_.size() > world_.size() && world_.size() < sizes_.nodes_max)
      growth_.newcomer(now);
    repeat_whether_dispensable(out, {node});
    ask_to_end(out, {node});
    consider_shrinking(out, now);
  } else {
    stop_what_has_ended(out, node, present->getState());
    take_newcomer(out, now, who);
  }
  tell_whether_dispensable(out);
  check();
  return out;
}

recovery_core::effects recovery_core::node_away(instant now, const msg<NodeAway>& m) {
  const node_name node = m.read()->getNode().cStr();
  if (roster_.away(node) && is_up() && is_member(node))
    away_.emplace(node, now);
  check();
  return {};
}

recovery_core::effects recovery_core::node_lost(instant now, const msg<NodeLost>& m) {
  effects out;
  auto lost = m.read();
  const node_name node = lost->getNode().cStr();
  if (partings_.end(node) && phase_ == phase::gathering)
    consider_proposing(out, now);
  if (!roster_.knows(node))
    return out;
  const auto address = roster_.address(node);
  roster_.forget(now, node);
  standing_by_.erase(node);
  if (phase_ == phase::concluded)
    return out; // it has heard the verdict and left
  if (!address.empty())
    out.push_back(lose{node, address, lost->getReason().cStr()});
  out.push_back(note{{log::level::notice,
                      "node_lost",
                      fmt::format("node {} is lost: {}", node, lost->getReason().cStr()),
                      {{"node", node}, {"reason", std::string(lost->getReason().cStr())}}}});
  if (phase_ == phase::gathering) {
    consider_proposing(out, now);
  } else if (is_member(node)) {
    const auto known = away_.find(node);
    const auto since = known == away_.end() ? now : known->second.value_or(began_);
    away_.erase(node);
    // The time without a link counts, not the end of the wait for its return: by that its peers,
    // which failed in between, are known to have failed because of it.
    // What a node had to do that has finished is done.
    if (finished_.count(node) == 0) {
      TROUPE_RARE_IF(!was_sealed_, "planner: a member is lost while its generation is formed");
      lost_.emplace(node, since);
      note_failure(since);
      become_ending(now);
    }
  } else {
    consider_shrinking(out, now);
  }
  tell_whether_dispensable(out);
  check();
  return out;
}

// ---- the generation that is up ----

bool recovery_core::is_up() const {
  return phase_.in(phase::forming, phase::running, phase::ending);
}

bool recovery_core::about_current(const any_msg& m) const {
  return is_up() && m.envelope().about == current_;
}

recovery_core::effects recovery_core::sealed(instant now, const msg<Sealed>& m) {
  effects out;
  if (!about_current(m.any()))
    return out;
  was_sealed_ = true;
  sealed_at_ = works_since_ = now;
  growth_.generation_begins(now);
  roster_.remember_world(world_);
  // A member may have failed while the seal was on its way to the journal: it is ending then.
  if (phase_ == phase::forming)
    phase_.become(phase::running);
  consider_shrinking(out, now);
  tell_whether_dispensable(out);
  check();
  return out;
}

recovery_core::effects recovery_core::running(instant now, const msg<Running>& m) {
  effects out;
  if (about_current(m.any()) && phase_ == phase::running)
    take_started(out, now, m.read()->getNode().cStr());
  return out;
}

void recovery_core::take_started(effects& out, instant now, const node_name& node) {
  if (!is_member(node) || !started_.insert(node).second || started_.size() < members_.size())
    return;
  out.push_back(note{started_in_words(now)});
  works_since_ = now;
  failed_at_.reset();
}

recovery_core::effects recovery_core::failed(instant now, const msg<Failed>& m) {
  if (!about_current(m.any()))
    return {};
  auto report = m.read();
  failures_.take(now, report->getNode().cStr(), report->getFailures(), sealed_at_,
                 options_.hardware);
  note_failure(now);
  become_ending(now);
  check();
  return {};
}

recovery_core::effects recovery_core::finished(instant now, const msg<Finished>& m) {
  effects out;
  const node_name node = m.read()->getNode().cStr();
  if (!about_current(m.any()) || !is_member(node))
    return out;
  finished_.insert(node);
  if (m.read()->getAsked())
    take_asked(out, now, node);
  return out;
}

recovery_core::effects recovery_core::stopped(instant now, const msg<Stopped>& m) {
  if (!about_current(m.any()))
    return {};
  auto report = m.read();
  failures_.take(now, report->getNode().cStr(), report->getFailures(), sealed_at_,
                 options_.hardware);
  // A generation of which a node has ended its part is ending, whichever actor says so first.
  if (!failures_.empty())
    note_failure(now);
  become_ending(now);
  check();
  return {};
}

void recovery_core::note_failure(instant since) {
  if (!failed_at_)
    failed_at_ = since;
}

recovery_core::effects recovery_core::generation_ended(instant now, generation which,
                                                       const std::optional<std::string>& why) {
  effects out;
  if (which != current_ || !std::exchange(in_the_tree_, false) || phase_ == phase::concluded)
    return out;
  // Each generation is judged once, though its start may fail and its end be told as well.
  growth_.generation_ends(now);
  judge(out, now, why);
  check();
  return out;
}

recovery_core::effects recovery_core::abandon(instant now, const std::string& reason) {
  effects out;
  if (phase_ != phase::concluded)
    conclude(out, now, ending::stopped, reason);
  check();
  return out;
}

// ---- time ----

recovery_core::effects recovery_core::tick(instant now) {
  effects out;
  if (recalled_at_ && now >= recall_until())
    stop_waiting_for_return(out, now);
  check_again(out, now);
  if (auto told = topology_.over(now))
    out.push_back(note{std::move(*told)});
  for (const auto& [node, reason] : partings_.take_late(now))
    out.push_back(evict{node, reason, false});
  if (phase_ == phase::gathering) {
    consider_proposing(out, now);
    if (phase_ == phase::gathering)
      consider_giving_up(out, now);
  } else if (const auto due = growth_due(); due && now >= *due) {
    consider_growing(out, now);
  }
  consider_planned_end(out, now);
  if (phase_ == phase::gathering && waiting_.due(now))
    out.push_back(note{reminder_in_words(now)});
  check();
  return out;
}

std::optional<instant> recovery_core::next_wakeup() const {
  std::optional<instant> first;
  const auto consider = [&first](instant at) { first = first ? std::min(*first, at) : at; };
  if (recalled_at_)
    consider(recall_until());
  if (const auto late = partings_.until())
    consider(*late);
  if (phase_ == phase::gathering) {
    // The answer of a check is an event, and so is the return or the loss of a member that is away.
    const bool checked_first = check_again_at_ || (checking_ && !checking_->alone);
    if (!enough_since_)
      consider(phase_since_ + sizes_.join_timeout);
    else if (!checked_first && waits_for_topology())
      consider(topology_.until());
    else if (!checked_first && settled_at())
      consider(std::max(*settled_at(), ladder_.holds_until().value_or(*settled_at())));
    if (const auto reminding = waiting_.next())
      consider(*reminding);
  }
  if (const auto growing = growth_due())
    consider(*growing);
  if (const auto overdue = planned_end_due())
    consider(*overdue);
  if (check_again_at_)
    consider(*check_again_at_);
  return first;
}

// ---- transitions ----

void recovery_core::become_gathering(effects& out, instant now) {
  phase_.become(phase::gathering);
  phase_since_ = now;
  waiting_.begin(now);
  enough_since_.reset();
  ladder_.begin_gathering();
  // From here on only the names and ranks of the last sealed world count, and the roster has those.
  forget_generation();
  consider_proposing(out, now);
}

void recovery_core::become_forming(effects& out, instant now) {
  phase_.become(phase::forming);
  phase_since_ = now;
  waiting_.end();
  current_ = next_generation(std::max(current_, newest_heard_), author_.following());
  first_world_ = false;
  was_sealed_ = false;
  in_the_tree_ = true;
  sealed_at_.reset();
  // On record before any node hears the number: no later master can use it for another world.
  out.push_back(record{author_
                           .write<GenerationProposed>(current_,
                                                      [&](auto b) {
                                                        b.setGeneration(current_.value);
                                                        b.setRelaunches(ladder_.relaunches());
                                                      })
                           .any()});
  out.push_back(start_generation{world_message(now), owners_message(), std::nullopt,
                                 members_may_take(), std::exchange(count_next_, std::nullopt)});
}

/// Many members fail of one generation, and each of them says so; only the first is a transition.
void recovery_core::become_ending(instant) {
  if (phase_ != phase::ending)
    phase_.become(phase::ending);
}

void recovery_core::forget_generation() {
  world_.clear();
  members_.clear();
  started_.clear();
  finished_.clear();
  away_.clear();
  lost_.clear();
  failures_.clear();
  stopped_for_.reset();
  planned_.reset();
  asked_to_end_ = false;
  said_dispensable_.reset();
}

// ---- the world ----

/// One slow node must not be evicted by the limit of the others, nor make them all wait for longer.
std::vector<duration> recovery_core::members_may_take() const {
  std::vector<duration> all;
  for (const auto& s : world_)
    all.push_back(roster_.stop_within(s.node).value_or(sizes_.stop_within) + sizes_.prepare_slack);
  return all;
}

/// What holds at the end of each event, whatever it was.
void recovery_core::check() const {
  invariant(is_up() == !world_.empty() || phase_ == phase::concluded,
            "a world without its generation, or a generation without a world");
  invariant(world_.size() == members_.size(), "a node has two seats");
  invariant(phase_ != phase::running || was_sealed_, "a world runs that is not sealed");
  invariant(phase_ != phase::running || (lost_.empty() && failures_.empty()),
            "a generation goes on without a member");
  invariant(finished_.size() <= members_.size() && started_.size() <= members_.size(),
            "more members report than there are");
}

} // namespace troupe::actors
