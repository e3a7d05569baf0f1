#include "tests/actors/leader_world.hpp"

#include "runtime/base/invariant.hpp"

#include <utility>

namespace troupe::actors::testing {

namespace {

leader_core fresh(std::uint32_t slots, bool leftovers) {
  return leader_core(leader_options{"a", slots, 30s}, messages::author("a/leader"), leftovers);
}

} // namespace

leader_world::leader_world(fate choose) : choose_(std::move(choose)), core_(fresh(slots, false)) {}

void leader_world::strike() {
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
    return;
  case 3:
    switch (choose_(16)) {
    case 0:
      leaving_ = true;
      if (choose_(2))
        return perform(core_.interrupted(now_, SIGINT));
      return perform(core_.abandon(now_, "no master"));
    case 1:
      return crash();
    default:
      return;
    }
  default:
    return stir_process();
  }
}

generation leader_world::some_generation() {
  // Mostly the newest, sometimes the next, sometimes one of old.
  const auto draw = choose_(8);
  if (draw == 0 && newest_ > 0)
    return generation{newest_ - 1};
  if (draw < 3)
    return generation{++newest_};
  return generation{newest_};
}

void leader_world::direct() {
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
void leader_world::crash() {
  if (leaving_)
    return;
  const auto survivors = let_survive();
  sweeping_ = false;
  drain_.reset();
  finished_.reset();
  store_left_ = std::exchange(store_, false);
  core_ = fresh(slots, true);
  if (!kept_)
    return;
  perform(core_.adopt(now_, *kept_, survivors));
  invariant(left_.empty(), "a process was left to itself");
}

/// Who is adopted, and also how those ended who did; all others wait for a sweep.
std::vector<ports::survivor> leader_world::let_survive() {
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

void leader_world::end_sweep(std::size_t killed) {
  sweeping_ = false;
  leftovers_ = !living_.empty();
  if (!leftovers_)
    gone_.clear();
  perform(core_.swept(now_, killed));
}

void leader_world::stir_process() {
  if (living_.empty())
    return;
  const auto at = std::next(living_.begin(), static_cast<std::ptrdiff_t>(choose_(living_.size())));
  const auto local = at->first;
  auto& p = at->second;
  if (p.ended)
    return end_process(local, *p.ended);
  if (!p.up && choose_(8) == 0) {
    const auto which = p.which;
    living_.erase(at);
    return perform(core_.worker_not_started(now_, which, local, "no such program", 0));
  }
  if (!p.up) {
    p.up = true;
    return perform(core_.worker_started(now_, p.which, local, 100));
  }
  switch (choose_(4)) {
  case 0:
    return end_process(local, exited(0));
  case 1:
    return end_process(local, exited(static_cast<int>(choose_(256))));
  case 2:
    return end_process(local, killed_by(p.asked_to_end ? SIGTERM : SIGSEGV));
  default:
    // What was said twice, or of nobody, is borne.
    return perform(core_.worker_started(now_, p.which, local, 100));
  }
}

void leader_world::end_process(local_rank local, ports::exit_status how) {
  const auto which = living_.at(local).which;
  gone_[local] = living_.at(local);
  gone_[local].ended = how;
  living_.erase(local);
  perform(core_.worker_ended(now_, which, local, how, {ports::to_string(how), {}, {}, 0, {}}));
}

void leader_world::let_be() {
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
        perform(core_.worker_started(now_, found->second.which, r, 100));
      } else if (found->second.asked_to_end) {
        end_process(r, killed_by(SIGTERM));
      }
    }
    if (sweeping_) {
      moved = true;
      end_sweep(0);
    }
    if (drain_) {
      moved = true;
      end_drain(false);
    }
    if (!moved)
      break;
  }
  invariant(!leaving_ || over_, "a node that is leaving never left");
  const auto phase = core_.current_phase();
  invariant(phase != leader_core::phase::draining && phase != leader_core::phase::sweeping,
            "a leader waits for what has happened");
  invariant(phase != leader_core::phase::saving, "a leader that nobody answers");
  for (const auto& [local, p] : living_)
    invariant(phase == leader_core::phase::running && p.which == core_.current(),
              "a process was forgotten");
}

// ---- obedience, and what must never be asked ----

void leader_world::perform(const leader_core::effects& effects) {
  for (const auto& effect : effects) {
    invariant(!over_, "a node that is over acts");
    std::visit([this](const auto& e) { this->obey(e); }, effect);
  }
}

void leader_world::check_nothing_is_left(const std::string& when) const {
  invariant(living_.empty(), "a process is alive " + when);
  invariant(!leftovers_, "not swept " + when);
}

void leader_world::obey(const leader_core::start_worker& e) {
  for (const auto& [local, p] : living_)
    invariant(p.which == e.place.which, "workers of two generations at once");
  invariant(!living_.count(e.place.local), "a local rank twice");
  invariant(e.place.which.value == newest_ || e.place.which == core_.current(),
            "a worker of a generation that is over");
  invariant(!leaving_, "a worker is started on the way out");
  invariant(kept_.has_value(), "a worker is started of whom no successor would know");
  living_[e.place.local] = process{e.place.which};
  leftovers_ = true;
}

void leader_world::obey(const leader_core::adopt_worker& e) {
  const auto found = left_.find(e.place.local);
  invariant(found != left_.end(), "a process is adopted that is not there");
  invariant(e.place.which == found->second.which, "a process is taken for another generation's");
  found->second.up = true;
  living_[e.place.local] = found->second;
  left_.erase(found);
}

void leader_world::obey(const leader_core::end_worker& e) {
  invariant(!kept_, "a process is to end that a successor would adopt");
  const auto found = living_.find(e.local);
  invariant(found != living_.end(), "a process that is gone is to end");
  found->second.asked_to_end = true;
}

void leader_world::obey(const leader_core::signal_worker& e) {
  invariant(living_.count(e.local) != 0, "a signal is passed on to a process that is gone");
}

void leader_world::obey(const leader_core::sweep&) {
  invariant(!sweeping_, "swept twice at once");
  invariant(living_.empty() || kept_, "a sweep while processes live");
  sweeping_ = true;
}

void leader_world::obey(const leader_core::open_store&) {
  check_nothing_is_left("when a store is opened");
  invariant(!store_, "two stores at once");
  store_ = true;
  perform(core_.store_placed(now_, static_cast<std::uint16_t>(choose_(4) ? 4000 : 0)));
}

void leader_world::obey(const leader_core::adopt_store&) {
  invariant(std::exchange(store_left_, false), "a store is adopted that is not there");
  store_ = true;
}

void leader_world::obey(const leader_core::close_store&) {
  check_nothing_is_left("when the store is closed");
  invariant(store_, "a store is closed that is not open");
  store_ = false;
}

void leader_world::obey(const leader_core::drain& e) {
  invariant(living_.empty(), "drained before all are gone");
  drain_ = e.which;
}

/// The saver answers, or has crashed.
void leader_world::end_drain(bool failed) {
  const auto which = *std::exchange(drain_, std::nullopt);
  perform(core_.drained(now_, which,
                        failed ? std::optional(error{errc::closed, "the saver has ended"})
                               : std::nullopt));
}

void leader_world::obey(const leader_core::pick_port&) {
  check_nothing_is_left("when a port is picked");
  perform(core_.store_placed(now_, static_cast<std::uint16_t>(choose_(4) ? 4000 : 0)));
}

void leader_world::obey(const leader_core::report& e) {
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
  } else if (e.message.is<messages::Failed>()) {
    invariant(e.message.as<messages::Failed>().read()->getFailures().size() > 0, "nothing failed");
    invariant(finished_ != e.message.envelope().about, "failed after it had finished");
  } else if (e.message.is<messages::Goodbye>()) {
    check_nothing_is_left("at the goodbye");
  }
}

void leader_world::obey(const leader_core::remember& e) {
  kept_.reset();
  if (e.what.envelope().about == generation{})
    return;
  check_nothing_is_left("when a successor is told of them");
  kept_ = e.what;
}

void leader_world::obey(const leader_core::node_over&) {
  check_nothing_is_left("when the node is over");
  invariant(!store_, "a store is open when the node is over");
  over_ = true;
}

} // namespace troupe::actors::testing
