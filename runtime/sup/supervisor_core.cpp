#include "runtime/sup/supervisor_core.hpp"

#include "runtime/base/invariant.hpp"
#include "runtime/base/limits.hpp"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace troupe::sup {

/// Keys are positions: the order of the list is the order of reliance, and every loop below goes by
/// it.
supervisor_core::supervisor_core(strategy how, budget limit, std::vector<child_options> children)
    : how_(how), dynamic_(false), budget_(limit.restarts, limit.period), used_by_(limit.restarts) {
  child_key next{};
  for (auto& options : children) {
    next = next.next();
    invariant(ids_.emplace(options.id, next).second, "two children of one id");
    children_.emplace(next, child{std::move(options)});
  }
}

supervisor_core::supervisor_core(budget limit)
    : how_(strategy::one_for_one), dynamic_(true), budget_(limit.restarts, limit.period),
      used_by_(limit.restarts) {}

/// Each event only changes the two sets of wishes, and settle() turns them into effects. So a
/// second failure in the middle of a repair is merged into it and needs no rule of its own.
std::vector<effect_type> supervisor_core::on(instant now, const event_type& e) {
  now_ = now;
  if (phase_ != supervisor_phase::ended) {
    std::visit([this](const auto& happened) { on(happened); }, e);
    settle();
  }
  return std::exchange(effects_, {});
}

std::optional<child_key> supervisor_core::find(const std::string& id) const {
  const auto found = ids_.find(id);
  if (found == ids_.end())
    return std::nullopt;
  return found->second;
}

// ---- events ----

void supervisor_core::on(const event::begin&) {
  for (const auto& [key, _] : children_)
    to_start_.insert(key);
}

/// The event that lets the next sibling begin, which may rely on this one.
void supervisor_core::on(const event::started& e) {
  child& c = at(e.child);
  // A supervisor below us may come up just after it was asked to end.
  TROUPE_RARE_IF(c.phase == child_phase::stopping, "supervisor: a child starts that is to end");
  if (c.phase == child_phase::stopping)
    return;
  c.phase.become(child_phase::running);
  --starting_;
  tell(c.starts == 1 ? happening::started : happening::restarted, c, {});
}

/// A child that was to be stopped anyway has not failed: the repair that wanted it down goes on.
void supervisor_core::on(const event::start_failed& e) {
  invariant(at(e.child).phase == child_phase::starting, "a start failed that was not asked for");
  became_down(e.child);
  if (to_stop_.erase(e.child) > 0)
    return;
  failed_to_start(e.child, e.why, true);
}

/// What an end means depends on what was wanted of the child: asked to end, still starting, or
/// running. The first is planned and costs no budget, whatever its reason.
void supervisor_core::on(const event::down& e) {
  child& c = at(e.child);
  const child_phase was = c.phase;
  became_down(e.child);
  const bool planned = to_stop_.erase(e.child) > 0 || was == child_phase::stopping;
  if (planned) {
    // Told already: why a supervisor ended by itself, and why children of one fate end.
    const bool is_news = c.options.stop_limit && how_ != strategy::one_fate;
    if (!e.normal)
      tell(is_news ? happening::stopped_badly : happening::ended, c, e.why);
    // A dynamic child does not come back, so the end is also the end of its id.
    if (to_forget_.count(e.child) > 0 || (dynamic_ && phase_ == supervisor_phase::stopping))
      forget_ended(e.child, e.normal ? std::nullopt : std::optional(error{errc::closed, e.why}));
  } else if (was == child_phase::starting) {
    failed_to_start(e.child, e.why, false);
  } else {
    ended_unasked(e.child, e.normal, e.why);
  }
}

/// The siblings are stopped while this child still cleans up (a member that waits for its node to
/// say Stopped), so the slowest of them decides how long the end takes, and not their sum. It is
/// stopped along with them, so its own end is a planned one.
void supervisor_core::on(const event::failing& e) {
  invariant(how_ == strategy::one_fate, "only a child of one fate fails before it ends");
  const child& c = at(e.child);
  // The message may come late: from a child that has ended since, or of an earlier incarnation.
  if (c.phase != child_phase::running || c.incarnation() != e.incarnation)
    return;
  tell(happening::fatal, c, e.why);
  become_stopping(error{errc::closed, e.why}, because_of_sibling(e.why));
}

/// A timer cannot be taken back. It carries the incarnation that it was for, and means nothing to
/// the next one, which might be on its way down just then.
void supervisor_core::on(const event::stop_overdue& e) {
  const auto found = children_.find(e.child);
  if (found == children_.end())
    return;
  const child& c = found->second;
  if (c.phase != child_phase::stopping || c.incarnation() != e.incarnation)
    return;
  tell(happening::killed, c,
       "did not end within " + in_words(c.options.stop_limit.value_or(duration{})));
  effects_.push_back(effect::kill{e.child});
}

/// Refused in this order: an end that has begun, a bound, a budget, and last the id, which is taken
/// by the very test that finds it free.
void supervisor_core::on(const event::add& e) {
  invariant(dynamic_, "a child was added to a fixed list");
  const auto refuse = [&](errc code, std::string why) {
    effects_.push_back(effect::forget{e.child, error{code, std::move(why)}});
  };
  // The requester hears a reason in each case: a request without an answer would stand until its
  // deadline.
  if (phase_ == supervisor_phase::stopping)
    return refuse(errc::closed, "the supervisor is stopping");
  if (children_.size() >= limits::children_max) {
    return refuse(errc::overloaded, fmt::format("{} children already", children_.size()));
  }
  // Checked before the start and not at the failure: a restart that the budget forbids must not run
  // even for a moment.
  if (e.against && used_by_.used_up(*e.against))
    return refuse(errc::refused,
                  fmt::format("all {} restarts of {} are used up", used_by_.allowed(), *e.against));
  if (!ids_.emplace(e.options.id, e.child).second) {
    return refuse(errc::refused, "there is a child called " + e.options.id);
  }
  if (e.against)
    used_by_.count(*e.against);
  children_.emplace(e.child, child{e.options});
  to_start_.insert(e.child);
}

/// A child on its way down gets the second order at once, as it may have less patience (SIGKILL
/// behind a SIGTERM). Its own limit towards us runs on.
void supervisor_core::on(const event::remove& e) {
  invariant(dynamic_, "a child was removed from a fixed list");
  const child& c = at(e.child);
  invariant(c.phase != child_phase::down, "a dynamic child that is down was not forgotten");
  to_forget_.insert(e.child);
  if (c.phase != child_phase::stopping)
    to_stop_.insert_or_assign(e.child, e.order);
  else
    effects_.push_back(effect::stop{e.child, c.incarnation(), std::nullopt, e.order});
}

void supervisor_core::on(const event::recall& e) {
  invariant(dynamic_, "restarts of a fixed list are counted against nothing");
  used_by_ = restarts_by_name(used_by_.allowed(), e.used);
}

/// The first order decides that this supervisor ends, and why; a later one only hurries it.
void supervisor_core::on(const event::shutdown& e) {
  if (phase_ == supervisor_phase::stopping)
    pass_on(e.order);
  else
    become_stopping(std::nullopt, e.order);
}

// ---- decisions ----

supervisor_core::child& supervisor_core::at(child_key key) {
  const auto found = children_.find(key);
  invariant(found != children_.end(), "an event about an unknown child");
  return found->second;
}

/// What settle() has to know of all children is in three counters, which follow the phases.
void supervisor_core::became_down(child_key key) {
  child& c = at(key);
  if (c.phase == child_phase::starting)
    --starting_;
  if (c.phase == child_phase::stopping)
    --stopping_;
  c.phase.become(child_phase::down);
  --living_;
}

/// `refused`: its starter returned no actor, which the requester hears as the answer. During the
/// first start a failure ends the supervisor without a try: what does not come up at all is a wrong
/// configuration or a bug, and the supervisor above has to know that its child is not there. Later
/// it is a failure like any other, and budgets are the back-off.
void supervisor_core::failed_to_start(child_key key, const std::string& why, bool refused) {
  child& c = at(key);
  tell(happening::start_failed, c, why);
  if (phase_ == supervisor_phase::starting) {
    tell(happening::gave_up, c, why);
    const auto reason = fmt::format("{} did not start: {}", c.options.id, why);
    become_stopping(error{errc::refused, reason}, because_of_sibling(reason));
  } else if (dynamic_ && c.starts == 1) {
    // Its first start is no restart: it is counted against no budget.
    if (refused)
      forget(key, error{errc::refused, why});
    else
      forget_ended(key, error{errc::refused, "did not start: " + why});
  } else {
    restart_because_of(key, "did not start: " + why);
  }
}

/// The kind of the child decides, not this event: a permanent child is restarted after a good end
/// as well, since its siblings count on it.
void supervisor_core::ended_unasked(child_key key, bool normal, const std::string& why) {
  child& c = at(key);
  // A good end is one of several that together are the good end of all; a bad one cannot be made up
  // for.
  if (how_ == strategy::one_fate) {
    tell(normal ? happening::ended : happening::fatal, c, why);
    if (!normal)
      become_stopping(error{errc::closed, why}, because_of_sibling(why));
    return;
  }
  const bool again =
      c.options.when == restart::permanent || (c.options.when == restart::transient && !normal);
  tell(again ? happening::failed : happening::ended, c, why);
  if (again)
    return restart_because_of(key, why);
  if (dynamic_)
    forget_ended(key, normal ? std::nullopt : std::optional(error{errc::closed, why}));
}

/// Counted before anything is stopped: a failure beyond the budget is no restart any more but the
/// end, and is passed up as the one failure of this supervisor.
void supervisor_core::restart_because_of(child_key key, const std::string& why) {
  if (!budget_.spend(now_)) {
    child& c = at(key);
    tell(happening::gave_up, c, why);
    const auto period =
        budget_.period() == for_life ? std::string("its life") : in_words(budget_.period());
    return become_stopping(
        error{errc::refused,
              fmt::format("more than {} restarts within {}, the last because {} ended: {}",
                          budget_.allowed(), period, c.options.id, why)},
        {});
  }
  // Whatever relies on the child that failed goes along: later siblings, or all. Those before it
  // have lost nothing.
  const auto first = how_ == strategy::one_for_all ? children_.begin() : children_.find(key);
  const auto last = how_ == strategy::one_for_one ? std::next(first) : children_.end();
  for (auto at = first; at != last; ++at) {
    const auto& [sibling, c] = *at;
    if (c.phase == child_phase::starting || c.phase == child_phase::running)
      to_stop_.emplace(sibling, stop_order{});
    // A transient child that had completed its task is started again too: those it worked with have
    // lost what it did for them.
    if (c.options.when != restart::temporary)
      to_start_.insert(sibling);
  }
}

/// The first reason stays. Children that are to be started are not: to_start_ is looked at in no
/// later phase.
void supervisor_core::become_stopping(std::optional<error> why, stop_order order) {
  if (phase_ == supervisor_phase::stopping)
    return;
  phase_.become(supervisor_phase::stopping);
  why_ = std::move(why);
  // Emplaced and not assigned: a child that a repair or a removal has already chosen keeps the
  // order that it was to get.
  for (const auto& [key, c] : children_) {
    if (c.phase == child_phase::starting || c.phase == child_phase::running)
      to_stop_.emplace(key, order);
  }
}

/// Children of one fate hear why they end; to others it is their supervisor's affair.
stop_order supervisor_core::because_of_sibling(const std::string& reason) const {
  if (how_ != strategy::one_fate)
    return {};
  return {stop_order::cause::sibling, reason, 0, {}};
}

/// A second order, usually one with less patience, reaches all that still live. Without a limit:
/// each child's own runs since it was first asked, or a second order would give it more time.
void supervisor_core::pass_on(const stop_order& order) {
  for (const auto& [key, c] : children_)
    if (c.phase == child_phase::stopping)
      effects_.push_back(effect::stop{key, c.incarnation(), std::nullopt, order});
  for (auto& [key, pending] : to_stop_)
    pending = order;
}

// ---- what follows ----

/// After each event: stops before starts, so that no new child meets an old one that is on its way
/// down; the end of the supervisor last, when none lives.
void supervisor_core::settle() {
  settle_stops();
  if (phase_ != supervisor_phase::stopping) {
    settle_starts();
    const bool all_ended_well = how_ == strategy::one_fate && phase_ == supervisor_phase::running;
    if (!all_ended_well)
      return;
  }
  if (living_ > 0)
    return;
  phase_.become(supervisor_phase::ended);
  effects_.push_back(effect::quit{why_});
}

/// One after the other, last first: a child that is asked to end may still rely on those before it.
/// Children that rely on no sibling are asked at once.
void supervisor_core::settle_stops() {
  while (!to_stop_.empty() && (stops_at_once() || stopping_ == 0)) {
    const child_key key = to_stop_.begin()->first;
    stop_order order = std::move(to_stop_.begin()->second);
    to_stop_.erase(to_stop_.begin());
    child& c = at(key);
    if (c.phase == child_phase::starting)
      --starting_;
    c.phase.become(child_phase::stopping);
    ++stopping_;
    effects_.push_back(effect::stop{key, c.incarnation(), c.options.stop_limit, std::move(order)});
  }
}

/// One after the other, first first, and only when no child is on its way down. A child may rely on
/// those before it, and a supervisor counts as up only when all below it are: so the next start
/// waits for that. Dynamic children rely on no sibling.
void supervisor_core::settle_starts() {
  while (!to_start_.empty()) {
    if (!dynamic_ && (starting_ > 0 || stopping_ > 0 || !to_stop_.empty()))
      return;
    const child_key key = *to_start_.begin();
    to_start_.erase(to_start_.begin());
    child& c = at(key);
    c.phase.become(child_phase::starting);
    ++c.starts;
    ++starting_;
    ++living_;
    effects_.push_back(effect::start{key, c.incarnation()});
  }
  // Once in a life. A later repair is this supervisor's own affair: to the one above it, it was up
  // all the time.
  if (phase_ == supervisor_phase::starting && starting_ == 0) {
    phase_.become(supervisor_phase::running);
    effects_.push_back(effect::announce{});
  }
}

void supervisor_core::tell(happening what, const child& c, std::string reason) {
  effects_.push_back(effect::report{what, c.options.id, std::move(reason), phase_});
}

/// During a shutdown the end of a child says nothing new to the planner, and the one that would be
/// told may be gone.
void supervisor_core::forget_ended(child_key key, std::optional<error> why) {
  if (phase_ != supervisor_phase::stopping)
    effects_.push_back(effect::tell_end{key, at(key).options.id, std::move(why)});
  forget(key, std::nullopt);
}

/// The last trace: the id is free, and the shell drops what it holds. No key is used again.
void supervisor_core::forget(child_key key, std::optional<error> why) {
  ids_.erase(at(key).options.id);
  children_.erase(key);
  to_forget_.erase(key);
  effects_.push_back(effect::forget{key, std::move(why)});
}

} // namespace troupe::sup
