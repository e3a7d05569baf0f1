#include "tests/actors/naive_node.hpp"

#include <algorithm>
#include <vector>

namespace troupe::actors::testing {

using namespace messages;

// ---- the link ----

void naive_node::link() {
  if (!known_) {
    ++which_;
    state_ = state_.phase == phase::IDLE ? state_ : idle_after(state_.about.value);
    dirty_ = immortal_ = judged_ = false;
    stop_open_.reset();
  }
  linked_ = known_ = true;
}

void naive_node::break_link() {
  linked_ = false;
  directives_.clear();
  said_.clear();
}

void naive_node::be_lost() {
  break_link();
  known_ = false;
}

void naive_node::be_replaced() {
  break_link();
  ++which_;
  state_ = nothing();
  dirty_ = immortal_ = judged_ = false;
  stop_open_.reset();
  verdict_.reset();
}

msg<NodePresent> naive_node::hello() const {
  return present(name_, state_, [this](auto b) { b.setIncarnation(which_); });
}

void naive_node::send(const any_msg& m) {
  if (linked_)
    directives_.push_back(m);
}

void naive_node::say(const any_msg& m) {
  if (linked_)
    said_.push_back(m);
}

std::optional<any_msg> naive_node::said() {
  if (said_.empty())
    return std::nullopt;
  const auto m = said_.front();
  said_.pop_front();
  return m;
}

// ---- directives ----

void naive_node::take_directive() {
  if (directives_.empty())
    return;
  const auto m = directives_.front();
  directives_.pop_front();
  follow(m);
}

void naive_node::follow(const any_msg& m) {
  const auto about = m.envelope().about.value;
  if (m.is<Conclude>()) {
    verdict_ = m.as<Conclude>().read()->getSuccess();
    state_ = idle_after(state_.about.value);
    dirty_ = false;
  } else if (m.is<Stop>()) {
    stop(about);
  } else if (verdict_) {
    return; // it is about to go
  } else if (m.is<Prepare>()) {
    prepare(about);
  } else if (m.is<Start>() && about == state_.about.value) {
    if (state_.phase == phase::PREPARED)
      state_ = running_in(about);
    say_state();
  }
}

void naive_node::prepare(std::uint64_t g) {
  if (g == state_.about.value)
    return say_state();
  if (g < state_.about.value)
    return;
  state_ = draining(g);
  dirty_ = true;
}

/// The answer is always Stopped, once nothing of the generation or of an older one is left.
void naive_node::stop(std::uint64_t g) {
  const bool has_processes = dirty_ || state_.phase == phase::RUNNING;
  if (g >= state_.about.value) {
    state_ = idle_after(g);
    dirty_ = has_processes;
  }
  if (dirty_)
    stop_open_ = std::max(stop_open_.value_or(g), g);
  else
    say(stopped(name_, g).any());
}

void naive_node::say_state() {
  const auto g = state_.about.value;
  switch (state_.phase) {
  case phase::PREPARED:
    return say(prepared(name_, g, 4000).any());
  case phase::RUNNING:
    return say(running(name_, g).any());
  case phase::FAILED:
    return say(failed(name_, g, state_.exit_codes).any());
  case phase::FINISHED:
    return say(finished(name_, g).any());
  case phase::IDLE:
    if (!dirty_)
      say(stopped(name_, g).any());
    return;
  default:
    return; // the answer follows
  }
}

// ---- processes ----

std::optional<std::uint64_t> naive_node::trains() const {
  if (state_.phase != phase::RUNNING)
    return std::nullopt;
  return state_.about.value;
}

void naive_node::stir(const fate& choose, bool calm, std::uint64_t failing) {
  if (dirty_)
    return clean(choose, calm);
  if (state_.phase != phase::RUNNING)
    return;
  const auto g = state_.about.value;
  const bool ends = calm || choose(4) == 0;
  if (ends && (calm || choose(8) >= failing)) {
    state_ = finished_in(g);
    say(finished(name_, g).any());
  } else if (ends) {
    const int hardware = 201, software = 1;
    const std::vector<int> codes{choose(8) == 0 ? hardware : software};
    state_ = failed_in(g, codes);
    dirty_ = true;
    say(failed(name_, g, codes).any());
  } else if (choose(50) == 0) {
    state_ = nothing(); // its agent falls, and its processes with it
    break_link();
  } else {
    say(running(name_, g).any());
  }
}

void naive_node::clean(const fate& choose, bool calm) {
  if (!judged_ && !calm)
    immortal_ = choose(40) == 0;
  judged_ = true;
  if (immortal_)
    return;
  dirty_ = judged_ = false;
  const auto g = state_.about.value;
  if (state_.phase == phase::DRAINING) {
    state_ = ready_for(g, 4000);
    ready_.insert(g);
    say(prepared(name_, g, 4000).any());
  } else if (state_.phase == phase::FAILED) {
    say(stopped(name_, g, state_.exit_codes).any());
  }
  if (stop_open_)
    say(stopped(name_, *stop_open_).any());
  stop_open_.reset();
}

} // namespace troupe::actors::testing
