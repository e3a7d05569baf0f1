// What uplink_core does without a link: how long it tries, and whether workers train on meanwhile.
//
// A master that is away needs no answer: training goes on without it. A node that is cut off has
// been replaced, and each second that it trains on two processes are one rank. Which of both it is
// no node can see by itself: its neighbours tell, and a limit stands where they do not.

#include "actors/node_supervisor/uplink/uplink_core.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

using namespace messages;

/// The time without a link begins.
void uplink_core::lost_link(instant now) {
  ++outages_;
  trying_since_ = idle_since_ = unanswered_since_ = now;
  master_absent_ = reached_since_lost_ = false;
}

/// Cut off and replaceable: only both together make this node's ranks a danger. One of them alone
/// is no reason to end workers that train well.
bool uplink_core::trains_on() const {
  const bool may_be_replaced = dispensable_.value_or(options_.nodes_min != options_.nodes_max);
  return trains_ && (!may_be_replaced || master_absent_);
}

instant uplink_core::gives_up_at() const {
  if (trains_on())
    return trying_since_ + options_.train_on_within;
  return (trains_ ? std::max(idle_since_, unanswered_since_) : idle_since_) +
         options_.connect_within;
}

/// Looked at behind each failed attempt and at no other time, as an attempt under way may still
/// succeed.
void uplink_core::become_resting(effects& out, instant now, const std::string& why) {
  if (now >= gives_up_at())
    return become_over(out, fmt::format("no link to the master at {} for {}: {}", options_.master,
                                        troupe::in_words(trains_on() ? options_.train_on_within
                                                                     : options_.connect_within),
                                        why));
  end_isolated_workers(out, now);
  rest(now, duration::zero());
  report_error(out, now, why);
}

void uplink_core::end_isolated_workers(effects& out, instant now) {
  // Longer than a master that was cut off itself forgives: before that this node has not been
  // replaced.
  if (!trains_ || trains_on() || now < unanswered_since_ + options_.isolated_within)
    return;
  end_workers(out, fmt::format("no network to the master for {}, and the other nodes may have "
                               "formed a world without this one",
                               troupe::in_words(options_.isolated_within)));
}

void uplink_core::end_workers(effects& out, const std::string& why) {
  trains_ = false;
  out.push_back(
      start_over{author_.write<Stop>(last_generation_, [&](auto b) { b.setReason(why); })});
  out.push_back(note{{log::level::warning,
                      "isolated",
                      why + ": its workers are ended, and it joins again when it can",
                      {{"master", options_.master}}}});
}

/// Once the master's address has answered since the link was lost, in whatever way, the neighbours
/// are not asked: they may have a master again that this node has not dialled yet.
MasterReach::Reach uplink_core::reach() const {
  if (phase_ == phase::linked)
    return MasterReach::Reach::LINKED;
  const bool no_link =
      phase_ == phase::resting || phase_ == phase::asking || phase_ == phase::dialling;
  return no_link && trains_ && !trains_on() && !reached_since_lost_ ? MasterReach::Reach::MISSED
                                                                    : MasterReach::Reach::ABSENT;
}

/// An attempt that is under way is given up with it: its hello says, or would say, that the workers
/// run.
uplink_core::effects uplink_core::neighbours_said(instant now, const msg<NeighboursSaid>& m) {
  effects out;
  auto said = m.read();
  if (reach() != MasterReach::Reach::MISSED || said->getOutage() != outages_)
    return out;
  hello_is_stale_ = phase_ != phase::resting;
  const auto missed = troupe::in_words(now - unanswered_since_);
  const std::string has_it = said->getHasIt().cStr();
  if (!has_it.empty())
    end_workers(out, fmt::format("no network to the master for {}, which node {} has: this node is "
                                 "cut off, and the others form a world without it",
                                 missed, has_it));
  else
    end_workers(out, fmt::format("no network to the master for {}, nor to any of {} other node{} "
                                 "that were asked: this node seems to be cut off, and the others "
                                 "may have formed a world without it",
                                 missed, said->getAsked(), said->getAsked() == 1 ? "" : "s"));
  return out;
}

} // namespace troupe::actors
