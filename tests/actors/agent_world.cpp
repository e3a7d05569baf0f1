#include "tests/actors/agent_world.hpp"

#include "runtime/base/invariant.hpp"

#include <algorithm>
#include <utility>

namespace troupe::actors::testing {

namespace {

agent_core fresh(std::uint32_t slots, bool leftovers) {
  agent_options options{"a", slots, 30s};
  options.leave_within = 60s;
  return agent_core(options, messages::author("a/agent"), leftovers);
}

} // namespace

agent_world::agent_world(fate choose) : choose_(std::move(choose)), core_(fresh(slots, false)) {}

void agent_world::strike() {
  now_ += std::chrono::milliseconds(choose_(100));
  switch (choose_(8)) {
  case 0:
  case 1:
    return direct();
  case 2:
    if (sweeping_)
      end_sweep(choose_(3));
    else if (drain_)
      end_drain(choose_(2) == 0);
    else if (look_)
      end_look();
    else
      open();
    return;
  case 3:
    switch (choose_(16)) {
    case 0:
      leaving_ = true;
      if (const auto signal = choose_(3))
        return perform(core_.interrupted(now_, signal == 1 ? SIGINT : SIGTERM, signal == 1));
      return perform(core_.abandon(now_, "no master"));
    case 1:
      return crash();
    case 2:
      return perform(core_.end_wanted(now_, end_wanted(some_generation().value)));
    case 3:
      return perform(core_.snapshot_wanted(now_));
    default:
      return perform(core_.tick(now_));
    }
  default:
    return stir_process();
  }
}

generation agent_world::some_generation() {
  // Mostly the newest, sometimes the next, sometimes one of old.
  const auto draw = choose_(8);
  if (draw == 0 && newest_ > 0)
    return generation{newest_ - 1};
  if (draw < 3)
    return generation{++newest_};
  return generation{newest_};
}

void agent_world::direct() {
  const auto which = some_generation().value;
  switch (choose_(12)) {
  case 0:
  case 1:
  case 2:
  case 3:
    return perform(
        core_.prepare(now_, choose_(2) ? prepare(which, {"a", "b"}) : prepare(which, {"b", "a"})));
  case 4:
  case 5:
  case 6:
  case 7:
    return perform(core_.start(now_, start(which)));
  case 8:
    if (choose_(8) != 0)
      return;
    leaving_ = true;
    return perform(core_.conclude(now_, conclude(choose_(2) == 0)));
  default:
    return perform(core_.stop(now_, stop(which)));
  }
}

/// The supervisor is killed, and its keeper starts the next one.
void agent_world::crash() {
  if (leaving_)
    return;
  const auto survivors = let_survive();
  sweeping_ = false;
  up_.reset();
  refused_ = false;
  drain_.reset();
  look_.reset();
  opening_.clear();
  finished_.reset();
  store_left_ = std::exchange(store_, false);
  core_ = fresh(slots, true);
  if (!kept_)
    return;
  perform(core_.adopt(now_, *kept_, survivors));
  invariant(left_.empty(), "a process was left to itself");
}

/// The survivors that are adopted, ended ones included; all others wait for a sweep.
std::vector<ports::survivor> agent_world::let_survive() {
  left_.clear();
  auto all = std::exchange(living_, {});
  if (!kept_)
    return {};
  std::vector<ports::survivor> found;
  all.insert(gone_.begin(), gone_.end());
  for (const auto& [local, p] : all) {
    // The crash came before it was started.
    if (!p.up && choose_(2) == 0)
      continue;
    left_[local] = p;
    found.push_back({10 + local, 100, local});
  }
  return found;
}

void agent_world::end_sweep(std::size_t killed) {
  sweeping_ = false;
  leftovers_ = !living_.empty();
  if (!leftovers_)
    gone_.clear();
  perform(core_.swept(now_, {killed, 0}));
}

void agent_world::stir_process() {
  if (living_.empty())
    return end_generation();
  const auto at = std::next(living_.begin(), static_cast<std::ptrdiff_t>(choose_(living_.size())));
  const auto local = at->first;
  auto& p = at->second;
  if (p.ended)
    return end_process(local, *p.ended);
  if (!p.up && choose_(8) == 0)
    return start_fails(local);
  if (!p.up) {
    p.up = true;
    return perform(core_.worker_started(now_, worker_started(p.which.value, local, 100)));
  }
  switch (choose_(4)) {
  case 0:
    return end_process(local, exited(0));
  case 1:
    return end_process(local, exited(static_cast<int>(choose_(256))));
  case 2:
    return end_process(local, killed_by(p.asked_to_end ? SIGTERM : SIGSEGV));
  default:
    // What was said twice, or of no worker, is borne.
    return perform(core_.worker_started(now_, worker_started(p.which.value, local, 100)));
  }
}

/// All its workers have ended, or it could not be started.
void agent_world::end_generation() {
  if (!up_)
    return;
  const auto which = *std::exchange(up_, std::nullopt);
  if (std::exchange(refused_, false))
    perform(core_.generation_refused(now_, which, "no supervisor", 0));
  else
    perform(core_.generation_ended(now_, which, 0));
}

void agent_world::start_fails(local_rank local) {
  const auto p = living_.at(local);
  living_.erase(local);
  say_end(local, p, exited(1), true);
}

void agent_world::end_process(local_rank local, ports::exit_status how) {
  const auto p = living_.at(local);
  gone_[local] = p;
  gone_[local].ended = how;
  living_.erase(local);
  // Now and then its actor crashes with it, and says nothing.
  if (choose_(16) != 0)
    say_end(local, p, how, false);
}

/// The worker tells the agent; when that has noted it the worker ends, and a bad end ends the
/// siblings.
void agent_world::say_end(local_rank local, const process& p, ports::exit_status how,
                          bool before_start) {
  exit_report why;
  why.message = ports::to_string(how);
  std::optional<duration> signalled;
  if (p.asked_to_end)
    signalled = 1ms;
  perform(core_.worker_ended(
      now_, worker_ended(p.which.value, local, {how, why, signalled, before_start})));
  if (p.asked_to_end || (how.success() && !before_start))
    return;
  invariant(!kept_, "processes are to end that a successor would adopt");
  for (auto& [sibling, other] : living_)
    other.asked_to_end = true;
}

void agent_world::let_be() {
  for (int i = 0; i < 1'000; ++i) {
    now_ += 1s;
    bool moved = false;
    for (local_rank r = 0; r < slots; ++r) {
      const auto found = living_.find(r);
      if (found == living_.end())
        continue;
      moved = moved || !found->second.up || found->second.asked_to_end || found->second.ended;
      if (found->second.ended) {
        end_process(r, *found->second.ended);
      } else if (!found->second.up) {
        found->second.up = true;
        perform(core_.worker_started(now_, worker_started(found->second.which.value, r, 100)));
      } else if (found->second.asked_to_end) {
        end_process(r, killed_by(SIGTERM));
      }
    }
    if (up_ && living_.empty()) {
      moved = true;
      end_generation();
    }
    if (sweeping_) {
      moved = true;
      end_sweep(0);
    }
    if (drain_) {
      moved = true;
      end_drain(false);
    }
    if (look_) {
      moved = true;
      end_look();
    }
    if (const auto next = core_.next_wakeup()) {
      moved = true;
      now_ = std::max(now_, *next);
      perform(core_.tick(now_));
    }
    if (!opening_.empty()) {
      moved = true;
      open();
    }
    if (!moved)
      break;
  }
  invariant(!leaving_ || over_, "a node that is leaving never left");
  const auto phase = core_.current_phase();
  invariant(phase != agent_core::phase::draining && phase != agent_core::phase::sweeping,
            "an agent waits for what has happened");
  invariant(phase != agent_core::phase::saving, "an agent waits for an answer that does not come");
  for (const auto& [local, p] : living_)
    invariant(phase == agent_core::phase::running && p.which == core_.current(),
              "a process was forgotten");
}

// ---- obedience, and what must never be asked ----

void agent_world::perform(const agent_core::effects& effects) {
  for (const auto& effect : effects) {
    invariant(!over_, "a node that is over acts");
    std::visit([this](const auto& e) { this->obey(e); }, effect);
  }
}

void agent_world::check_nothing_is_left(const std::string& when) const {
  invariant(living_.empty(), "a process is alive " + when);
  invariant(!leftovers_, "not swept " + when);
}

void agent_world::check_nothing_is_left_of(generation which) const {
  for (const auto& [local, p] : living_)
    invariant(which < p.which, "stopped, and a process is alive");
  invariant(!leftovers_ || which < ran_, "stopped, and not swept");
}

void agent_world::obey(const agent_core::start_generation& e) {
  invariant(!up_, "two generations at once");
  invariant(e.slots.size() == slots, "a generation without all its workers");
  invariant(!leaving_, "a generation is started on the way out");
  invariant(kept_.has_value(), "a generation is started that no successor would know of");
  up_ = e.which;
  refused_ = left_.empty() && choose_(16) == 0;
  for (const auto& slot : e.slots) {
    invariant(slot.place.which == e.which, "workers of two generations at once");
    if (slot.process)
      adopt_at(slot.place);
    else if (!refused_)
      start_at(slot.place);
  }
}

void agent_world::start_at(const assignment& place) {
  invariant(!living_.count(place.local), "a local rank twice");
  invariant(place.which.value == newest_ || place.which == core_.current(),
            "a worker of a generation that is over");
  living_[place.local] = process{place.which};
  ran_ = place.which;
  leftovers_ = true;
}

void agent_world::adopt_at(const assignment& place) {
  const auto found = left_.find(place.local);
  invariant(found != left_.end(), "a process is adopted that is not there");
  invariant(place.which == found->second.which, "a process is taken for another generation's");
  found->second.up = true;
  living_[place.local] = found->second;
  left_.erase(found);
}

void agent_world::obey(const agent_core::stop_generation& e) {
  invariant(!kept_, "a generation is to end that a successor would adopt");
  invariant(up_ == e.which, "a generation that is gone is to end");
  for (auto& [local, p] : living_)
    p.asked_to_end = true;
}

void agent_world::obey(const agent_core::signal_worker& e) {
  invariant(e.alone || living_.count(e.local) != 0,
            "a signal is passed on to a process that is gone");
  invariant(!e.alone || up_, "workers are asked to end that are gone");
}

void agent_world::obey(const agent_core::look_for_handler& e) {
  invariant(e.which == up_, "workers are to be asked that are gone");
  look_ = e;
}

void agent_world::end_look() {
  const auto asked = *std::exchange(look_, std::nullopt);
  perform(core_.handler_looked_for(now_, asked.which, asked.local, choose_(4) != 0));
}

void agent_world::obey(const agent_core::sweep&) {
  invariant(!sweeping_, "swept twice at once");
  invariant(living_.empty() || kept_, "a sweep while processes live");
  sweeping_ = true;
}

void agent_world::obey(const agent_core::open_store& e) {
  check_nothing_is_left("when a store is opened");
  invariant(!store_, "two stores at once");
  store_ = true;
  opening_.push_back(e.which);
}

/// The store of a generation that is over may come late.
void agent_world::open() {
  if (opening_.empty())
    return;
  const auto which = opening_.front();
  opening_.pop_front();
  perform(core_.store_placed(now_, which, static_cast<std::uint16_t>(choose_(4) ? 4000 : 0)));
}

void agent_world::obey(const agent_core::adopt_store&) {
  invariant(std::exchange(store_left_, false), "a store is adopted that is not there");
  store_ = true;
}

void agent_world::obey(const agent_core::close_store&) {
  check_nothing_is_left("when the store is closed");
  invariant(store_, "a store is closed that is not open");
  store_ = false;
}

void agent_world::obey(const agent_core::drain& e) {
  invariant(living_.empty(), "drained before all are gone");
  drain_ = e.which;
}

/// The saver answers, or has crashed.
void agent_world::end_drain(bool failed) {
  const auto which = *std::exchange(drain_, std::nullopt);
  perform(core_.drained(now_, which,
                        failed ? std::optional(error{errc::closed, "the saver has ended"})
                               : std::nullopt));
}

void agent_world::obey(const agent_core::pick_port& e) {
  check_nothing_is_left("when a port is picked");
  perform(core_.store_placed(now_, e.which, static_cast<std::uint16_t>(choose_(4) ? 4000 : 0)));
}

void agent_world::obey(const agent_core::report& e) {
  if (e.message.is<messages::Prepared>()) {
    check_nothing_is_left("when the node is ready");
    invariant(!leaving_, "ready on the way out");
    invariant(e.message.envelope().about == core_.current(), "ready for another generation");
  } else if (e.message.is<messages::Running>()) {
    for (const auto& [local, p] : living_)
      invariant(p.up, "Running before all are");
  } else if (e.message.is<messages::Finished>()) {
    invariant(living_.empty(), "Finished before all are");
    invariant(finished_ != e.message.envelope().about, "finished twice");
    finished_ = e.message.envelope().about;
  } else if (e.message.is<messages::Stopped>()) {
    check_nothing_is_left_of(e.message.envelope().about);
  } else if (e.message.is<messages::Failed>()) {
    invariant(e.message.as<messages::Failed>().read()->getFailures().size() > 0, "nothing failed");
    invariant(finished_ != e.message.envelope().about, "failed after it had finished");
  } else if (e.message.is<messages::Goodbye>()) {
    check_nothing_is_left("at the goodbye");
  }
}

void agent_world::obey(const agent_core::remember& e) {
  kept_.reset();
  if (e.what.envelope().about == generation{})
    return;
  check_nothing_is_left("when a successor is told of them");
  kept_ = e.what;
}

void agent_world::obey(const agent_core::node_over&) {
  check_nothing_is_left("when the node is over");
  invariant(!store_, "a store is open when the node is over");
  over_ = true;
}

} // namespace troupe::actors::testing
