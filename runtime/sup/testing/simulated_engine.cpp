#include "runtime/sup/testing/simulated_engine.hpp"

#include "runtime/base/invariant.hpp"
#include "runtime/sup/engine_config.hpp"

#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/send.hpp>

#include <algorithm>

namespace troupe::sup {

struct simulated_engine::parts {
  parts() : system(config) {}

  struct settings : detail::engine_config {
    settings() { set("scheduler.policy", caf::atom("testing")); }
  };

  caf::scheduler::test_coordinator& scheduler() {
    return static_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  }

  settings config;
  caf::actor_system system;
};

simulated_engine::simulated_engine(instant start) : parts_(std::make_unique<parts>()) {
  parts_->scheduler().clock().current_time = start;
  // CAF's own service actors settle first: they are no part of what a seed decides.
  parts_->scheduler().run();
}

simulated_engine::~simulated_engine() {
  power_cut();
  parts_->system.await_actors_before_shutdown(false);
}

caf::actor_system& simulated_engine::system() {
  return parts_->system;
}

instant simulated_engine::now() const {
  return parts_->scheduler().clock().now();
}

std::optional<instant> simulated_engine::next_timer() const {
  const auto& schedule = parts_->scheduler().clock().schedule();
  if (schedule.empty())
    return std::nullopt;
  return schedule.begin()->first;
}

void simulated_engine::advance(duration by) {
  invariant(by >= duration::zero(), "time does not run backwards");
  parts_->scheduler().advance_time(by);
}

bool simulated_engine::run_one(random_source& random) {
  auto& jobs = parts_->scheduler().jobs;
  if (jobs.empty())
    return false;
  const auto chosen = jobs.begin() + static_cast<std::ptrdiff_t>(random.below(jobs.size()));
  std::rotate(jobs.begin(), chosen, chosen + 1);
  parts_->scheduler().run_once();
  return true;
}

bool simulated_engine::run_first() {
  return parts_->scheduler().try_run_once();
}

std::size_t simulated_engine::run_all(random_source& random) {
  std::size_t handled = 0;
  while (run_one(random))
    ++handled;
  return handled;
}

std::size_t simulated_engine::run_for(duration by, random_source& random) {
  const instant end = now() + by;
  std::size_t handled = run_all(random);
  for (auto next = next_timer(); next && *next <= end; next = next_timer()) {
    advance(std::max(*next - now(), duration::zero()));
    handled += run_all(random);
  }
  advance(end - now());
  return handled + run_all(random);
}

void simulated_engine::power_cut() {
  auto& scheduler = parts_->scheduler();
  for (const auto& root : parts_->config.roots())
    caf::anon_send_exit(root, caf::exit_reason::kill);
  // What still runs may arm timers until its own kill arrives.
  scheduler.clock().cancel_all();
  while (scheduler.try_run_once())
    scheduler.clock().cancel_all();
}

} // namespace troupe::sup
