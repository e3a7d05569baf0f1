#include "runtime/sup/testing/core_world.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace troupe::sup {

core_world::core_world(fate choose) : choose_(std::move(choose)), core_(draw_core()) {
  happen(event::begin{});
}

std::vector<child_options> core_world::draw_children() {
  std::vector<child_options> children;
  const auto count = choose_(6);
  for (std::uint64_t i = 0; i < count; ++i) {
    being b;
    b.supervisor = choose_(4) == 0;
    b.options.id = "c" + std::to_string(i);
    b.options.when = static_cast<restart>(choose_(3));
    if (!b.supervisor)
      b.options.stop_limit = std::chrono::milliseconds(1 + choose_(3'000));
    children.push_back(b.options);
    beings_.emplace(last_key_ = last_key_.next(), b);
  }
  return children;
}

supervisor_core core_world::draw_core() {
  budget_ = {static_cast<unsigned>(choose_(5)), std::chrono::milliseconds(1 + choose_(5'000))};
  dynamic_ = choose_(4) == 0;
  how_ = dynamic_ ? strategy::one_for_one : static_cast<strategy>(choose_(4));
  return dynamic_ ? supervisor_core(budget_) : supervisor_core(how_, budget_, draw_children());
}

// ---- fate ----

std::optional<child_key> core_world::some(bool (*is)(const being&)) {
  std::vector<child_key> candidates;
  for (const auto& [key, b] : beings_) {
    if (is(b))
      candidates.push_back(key);
  }
  if (candidates.empty())
    return std::nullopt;
  return candidates[choose_(candidates.size())];
}

void core_world::strike() {
  switch (choose_(dynamic_ ? 14 : one_fate() ? 12 : 11)) {
  case 0:
  case 1:
  case 2:
    if (const auto victim = some([](const being& b) { return b.alive; }))
      die(*victim, choose_(3) == 0);
    return;
  case 3:
  case 4:
  case 5:
    if (const auto obedient = some([](const being& b) { return b.stopping; }))
      die(*obedient, true);
    return;
  case 6:
  case 7:
    if (const auto ready = some([](const being& b) { return b.starting; })) {
      beings_.at(*ready).starting = false;
      happen(event::started{*ready});
    }
    return;
  case 8:
  case 9:
    return pass_time();
  case 10:
    if (choose_(20) > 0)
      return;
    shutting_down_ = true;
    return happen(event::shutdown{{stop_order::cause::asked, "enough", 0, {}}});
  case 11:
    if (one_fate())
      return fail_early();
    [[fallthrough]];
  case 12:
    return add_child();
  case 13:
    if (const auto unwanted = some([](const being& b) { return b.alive; }))
      happen(event::remove{*unwanted, {stop_order::cause::asked, "unwanted", 0, {}}});
    return;
  }
}

void core_world::fail_early() {
  if (const auto ill = some([](const being& b) { return b.alive; }))
    happen(event::failing{*ill, beings_.at(*ill).incarnation, "it cleans up"});
}

void core_world::let_be() {
  fair_ = true;
  // Time first, so that deadlines that have passed are dealt with before the children obey.
  pass_time();
  for (bool busy = true; busy;) {
    busy = false;
    if (const auto obedient = some([](const being& b) { return b.stopping; })) {
      busy = true;
      die(*obedient, true);
    } else if (const auto ready = some([](const being& b) { return b.starting; })) {
      busy = true;
      beings_.at(*ready).starting = false;
      happen(event::started{*ready});
    }
  }
  invariant(!shutting_down_ || ended_, "a shutdown was never completed");
  invariant(ended_ || core_.phase() == supervisor_phase::running,
            "neither running nor ended, and nothing follows");
  for (const auto& [key, b] : beings_) {
    if (ended_)
      invariant(!b.alive, "a child outlived its supervisor");
    else if (b.options.when == restart::permanent && how_ != strategy::one_fate)
      invariant(b.alive, "a permanent child stayed down: " + b.options.id);
  }
}

void core_world::pass_time() {
  now_ += std::chrono::milliseconds(choose_(2'000));
  // Copied: what follows an event may change the children.
  std::vector<std::pair<child_key, unsigned>> due;
  for (auto& [key, b] : beings_) {
    if (!b.deadline || *b.deadline > now_)
      continue;
    b.deadline.reset();
    b.overdue = b.stopping;
    due.emplace_back(key, b.incarnation);
  }
  for (const auto& [key, incarnation] : due)
    happen(event::stop_overdue{key, incarnation});
}

void core_world::add_child() {
  being b;
  b.options = {"d" + std::to_string(choose_(8)), static_cast<restart>(choose_(3)), 1s};
  beings_.emplace(last_key_ = last_key_.next(), b);
  happen(event::add{last_key_, b.options, std::nullopt});
}

void core_world::die(child_key key, bool normal) {
  being& b = beings_.at(key);
  b.alive = b.starting = b.stopping = b.overdue = false;
  happen(event::down{key, normal, normal ? "as it should" : "it was struck down"});
}

// ---- obedience, and what must never be asked ----

void core_world::happen(event_type e) {
  events_.push_back(std::move(e));
  if (events_.size() > 1)
    return;
  while (!events_.empty()) {
    const auto effects = core_.on(now_, events_.front());
    invariant(!ended_ || effects.empty(), "a dead supervisor acts");
    for (const auto& effect : effects)
      std::visit([this](const auto& it) { obey(it); }, effect);
    events_.pop_front();
  }
}

void core_world::obey(const effect::start& e) {
  being& b = beings_.at(e.child);
  invariant(!b.alive, "two incarnations of one child");
  invariant(!shutting_down_, "a child is started during a shutdown");
  invariant(e.incarnation == 0 || e.incarnation == b.incarnation + 1, "an incarnation was skipped");
  invariant(e.incarnation == 0 || (b.options.when != restart::temporary && !one_fate()),
            "a child is started again that must not be");
  for (const auto& [key, other] : beings_) {
    if (dynamic_ || key == e.child)
      continue;
    invariant(!other.stopping, "a child is started while a sibling is on its way down");
    invariant(!other.starting, "two children are started at once");
    if (key < e.child && relies_on_order(other) && !one_fate())
      invariant(other.alive, "a child is started before those it relies on");
  }
  b.incarnation = e.incarnation;
  if (!b.supervisor && !fair_ && choose_(8) == 0)
    return happen(event::start_failed{e.child, "no luck"});
  b.alive = true;
  b.starting = b.supervisor;
  if (!b.supervisor)
    happen(event::started{e.child});
}

void core_world::obey(const effect::stop& e) {
  being& b = beings_.at(e.child);
  invariant(b.alive, "a child is stopped that is down");
  if (!e.limit && b.stopping)
    return; // a further order, and its time runs already
  invariant(!b.stopping, "a child is given its time to stop twice");
  invariant(b.incarnation == e.incarnation, "another incarnation is stopped");
  invariant(e.limit == b.options.stop_limit,
            "a child is given another time limit than it was promised");
  for (const auto& [key, other] : beings_) {
    if (dynamic_ || one_fate())
      break;
    invariant(!other.stopping, "two children are stopped at once");
    if (shutting_down_ && key > e.child)
      invariant(!other.alive, "a child is stopped before those that rely on it");
  }
  b.stopping = true;
  b.starting = false;
  b.deadline.reset();
  if (e.limit)
    b.deadline = now_ + *e.limit;
}

void core_world::obey(const effect::kill& e) {
  being& b = beings_.at(e.child);
  invariant(b.overdue, "a child is killed that was in time");
  die(e.child, false);
}

void core_world::obey(const effect::tell_end& e) {
  invariant(dynamic_ && !shutting_down_, "an end is told that concerns no one");
  invariant(!beings_.at(e.child).alive, "the end of a living child is told");
}

void core_world::obey(const effect::forget& e) {
  invariant(dynamic_, "a child of a fixed list is forgotten");
  invariant(!beings_.at(e.child).alive, "a living child is forgotten");
  beings_.erase(e.child);
}

void core_world::obey(const effect::announce&) {
  invariant(!std::exchange(announced_, true), "announced twice");
  for (const auto& [key, b] : beings_) {
    if (b.options.when == restart::permanent && !one_fate())
      invariant(b.alive && !b.starting, "announced before all are up");
  }
}

void core_world::obey(const effect::quit& e) {
  invariant(!std::exchange(ended_, true), "ended twice");
  invariant(shutting_down_ || one_fate(), "ended without a reason");
  for (const auto& [key, b] : beings_)
    invariant(!b.alive, "a supervisor ends before its children");
  invariant(!e.why || !e.why->what.empty(), "gave up without a word");
}

void core_world::obey(const effect::report& e) {
  if (e.what == happening::fatal) {
    invariant(one_fate(), "the end of one child is fatal to independent ones");
    shutting_down_ = true;
  }
  if (e.what == happening::gave_up) {
    invariant(!announced_ || counted_.size() > budget_.restarts || one_fate(),
              "gave up within its budget");
    shutting_down_ = true;
  }
  // Not counted: a first start, be it of the whole list or of a dynamic child, which is then
  // forgotten.
  const bool first_start = !announced_ || (dynamic_ && !core_.find(e.offender));
  const bool counts = !one_fate() && (e.what == happening::failed ||
                                      (e.what == happening::start_failed && !first_start));
  if (!counts)
    return;
  counted_.push_back(now_);
  while (now_ - counted_.front() > budget_.period)
    counted_.pop_front();
  invariant(counted_.size() <= budget_.restarts + 1, "went on beyond its budget");
}

} // namespace troupe::sup
