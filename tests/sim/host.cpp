#include "tests/sim/host.hpp"

#include "runtime/base/invariant.hpp"
#include "runtime/sup/root.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::sim {

namespace {

/// Actors that go on for so long without time passing will do so for ever.
constexpr std::size_t jobs_at_one_instant_max = 2'000'000;

/// A clock starts where it likes: readings of two hosts may not be compared.
instant first_reading(std::uint64_t boot, const std::string& name) {
  std::uint64_t hash = boot;
  for (const char c : name)
    hash = hash * 31 + static_cast<unsigned char>(c);
  return instant{} + std::chrono::seconds(1'000 + hash % 9'000);
}

} // namespace

host::host(world& of, std::string name, std::uint64_t boot, host_options options)
    : world_(of), name_(std::move(name)), boot_(boot), options_(options), born_(of.events.now()),
      engine_(std::make_unique<sup::simulated_engine>(first_reading(boot, name_))) {
  world_.write(name_, fmt::format("up     boot {}", boot_));
  world_.tell(&observer::started, name_, boot_);
}

host::~host() = default;

instant host::local(instant true_time) const {
  const auto passed = true_time - born_;
  return first_reading(boot_, name_) + passed + passed * options_.drift_ppm / 1'000'000;
}

instant host::true_time(instant local_time) const {
  const auto passed = local_time - first_reading(boot_, name_);
  // In two parts, since a timer may be set for hours. Rounded up: one that rings early would have
  // to be set again.
  const auto rate = 1'000'000 + options_.drift_ppm;
  return born_ + passed / rate * 1'000'000 + passed % rate * 1'000'000 / rate + duration(1);
}

instant host::now() const {
  return local(world_.events.now());
}

log::sink host::sink() {
  return [this](const std::string& component, const log::event& e) {
    world_.write(name_, fmt::format("{}: {} {}", component, log::to_string(e.severity), e.text));
    world_.tell(&observer::said, name_, component, e);
  };
}

void host::run_tree(const sup::tree& t, std::function<void(const std::optional<error>&)> on_end) {
  call([this, t, on_end = std::move(on_end)] {
    const auto told = [this, on_end](const sup::ending& e) {
      // A process that is killed does not tell how its tree ended.
      if (running_)
        world_.events.in({}, [on_end, e] { on_end(e); });
    };
    root_ = std::make_unique<sup::root>(sup::spawn_root(engine_->system(), t, sink(), told));
  });
}

void host::stop_tree() {
  call([this] {
    if (root_)
      root_->stop();
  });
}

void host::call(std::function<void()> what) {
  if (!alive())
    return;
  if (paused_) {
    held_back_.push_back(std::move(what));
    return;
  }
  invariant(!running_, "a host was called from inside a host");
  running_ = true;
  engine_->advance(std::max(now() - engine_->now(), duration::zero()));
  what();
  run_actors();
  running_ = false;
  plan_wake();
}

void host::call_in(duration delay, std::function<void()> what) {
  world_.events.in(delay, [self = shared_from_this(), what = std::move(what)]() mutable {
    self->call(std::move(what));
  });
}

void host::run_actors() {
  for (std::size_t jobs = 0; jobs < jobs_at_one_instant_max; ++jobs) {
    if (options_.hesitation > 0 && world_.random.chance(options_.hesitation)) {
      if (!continues_) {
        continues_ = true;
        call_in(world_.between(1us, 300us), [this] { continues_ = false; });
      }
      return;
    }
    const bool ran = options_.in_order ? engine_->run_first() : engine_->run_one(world_.random);
    if (!ran)
      return;
  }
  world_.blame("no_livelock", name_ + " did not come to rest");
}

void host::plan_wake() {
  const auto next = engine_->next_timer();
  if (!next)
    return;
  const auto when = true_time(*next);
  if (wake_planned_ && *wake_planned_ <= when)
    return;
  wake_planned_ = when;
  world_.events.at(when, [self = shared_from_this(), when] {
    if (self->wake_planned_ != when)
      return;
    self->wake_planned_.reset();
    self->call([] {});
  });
}

void host::pause() {
  if (!alive() || paused_)
    return;
  world_.write(name_, "! frozen");
  paused_ = true;
  world_.tell(&observer::froze, name_);
}

void host::resume() {
  if (!alive() || !paused_)
    return;
  world_.write(name_, "! thawed");
  paused_ = false;
  world_.tell(&observer::thawed, name_);
  for (auto& what : std::exchange(held_back_, {}))
    call(std::move(what));
  call([] {});
}

void host::end(ending_kind how) {
  if (!alive())
    return;
  invariant(!running_, "a host ended itself from inside");
  const char* word = how == ending_kind::exited    ? "exited"
                     : how == ending_kind::killed  ? "killed"
                     : how == ending_kind::crashed ? "crashed"
                                                   : "power cut";
  world_.write(name_, fmt::format("down   {}", word));
  held_back_.clear();
  root_.reset();
  // Actors are destroyed here; alive() is false for what their destructors ask of the ports.
  const auto dying = std::move(engine_);
  world_.tell(&observer::ended, name_, how);
}

} // namespace troupe::sim
