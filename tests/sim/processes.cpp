#include "tests/sim/processes.hpp"

#include "runtime/base/invariant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <sstream>
#include <utility>

namespace troupe::sim {

namespace {

/// A place in an assignment, in the one string that a specification needs here.
std::string text_of(const actors::assignment& a) {
  return fmt::format("{} {} {} {}", a.which.value, a.rank, a.local, a.world_size);
}

struct place {
  std::uint64_t which = 0;
  global_rank rank = 0;
  local_rank local = 0;
  std::uint32_t world_size = 1;
};

place place_from(const std::string& text) {
  place p;
  std::istringstream in(text);
  invariant(static_cast<bool>(in >> p.which >> p.rank >> p.local >> p.world_size),
            "a simulated process without a place");
  return p;
}

trainers::script script_from(const std::string& text) {
  int exits = -1;
  trainers::script s;
  std::istringstream in(text);
  invariant(static_cast<bool>(in >> exits >> std::boolalpha >> s.ignores_sigterm >> s.leaves_stray),
            "a simulated process without a script");
  if (exits >= 0)
    s.exits = exits;
  return s;
}

} // namespace

// ---- What a launcher holds ----

class sim_process_host final : public ports::process_host {
 public:
  sim_process_host(trainers& of, host_ptr launcher)
      : trainers_(of), launcher_(std::move(launcher)) {}

  void aside(std::function<void()> job) override {
    // One after the other, as on one thread.
    const auto now = trainers_.world_.events.now();
    free_at_ = std::max(free_at_, now) + trainers_.world_.between(20us, 1ms);
    launcher_->call_in(free_at_ - now, std::move(job));
  }
  result<ports::started> start(const ports::process_spec& spec, ended on_end) override {
    return trainers_.start(launcher_, spec, std::move(on_end));
  }
  std::vector<ports::survivor> survivors() override { return trainers_.survivors(launcher_); }
  void adopt(ports::process_id process, ended on_end) override {
    trainers_.adopt(launcher_, process, std::move(on_end));
  }
  void signal(ports::process_id process, int number) override {
    // What destructors of a dying launcher ask for is done by the parent-death signal.
    if (launcher_->alive())
      trainers_.signal(process, number);
  }
  void signal_alone(ports::process_id process, int number) override {
    if (launcher_->alive())
      trainers_.signal_alone(process, number);
  }
  bool takes_signal(std::int32_t pid, int) override {
    return trainers_.takes_signal(launcher_->name(), pid);
  }
  void sweep(const ports::sweep_order& order, std::function<void(const ports::left_behind&)> waits,
             std::function<void(const ports::swept&)> done) override {
    trainers_.sweep(launcher_, {order, std::move(waits), std::move(done)});
  }
  result<std::uint16_t> free_port(const std::string&) override { return ++trainers_.next_port_; }
  std::int64_t unix_time_ms() override {
    const auto passed = trainers_.world_.events.now().time_since_epoch();
    return 1'700'000'000'000 + passed / 1ms;
  }
  std::optional<std::string> read_small_file(const std::string&, std::size_t) override {
    return std::nullopt;
  }
  std::optional<std::string> read_end_of_file(const std::string&, std::size_t) override {
    return std::nullopt;
  }

 private:
  trainers& trainers_;
  host_ptr launcher_;
  instant free_at_{}; ///< when what was asked for aside is done
};

trainers::trainers(world& of, trainer_options options) : world_(of), options_(options) {}

std::shared_ptr<ports::process_host> trainers::host_of(const host_ptr& launcher) {
  return std::make_shared<sim_process_host>(*this, launcher);
}

ports::process_spec trainers::spec_of(const actors::assignment& place) {
  ports::process_spec spec;
  spec.argv = {"trainer", text_of(place)};
  return spec;
}

ports::process_spec trainers::scripted(const script& s) {
  ports::process_spec spec;
  spec.argv = {s.missing ? "missing" : "script",
               fmt::format("{} {} {}", s.exits.value_or(-1), s.ignores_sigterm, s.leaves_stray)};
  return spec;
}

// ---- Starting and ending ----

process_record& trainers::enroll(const host_ptr& launcher) {
  process_record p;
  p.number = all_.size() + 1;
  p.node = launcher->name();
  p.boot = launcher->boot();
  p.pid = ++next_pid_;
  p.started = world_.events.now();
  all_.push_back(p);
  return all_.back();
}

ports::started trainers::start_scripted(const host_ptr& launcher, const script& s,
                                        ports::process_host::ended on_end) {
  const auto& p = enroll(launcher);
  auto& life = living_[p.number];
  life.launcher = launcher;
  life.on_end = std::move(on_end);
  life.ignores_sigterm = s.ignores_sigterm;
  life.leaves_stray = s.leaves_stray;
  if (s.exits)
    end_in(world_.between(1ms, 5ms), p.number, {false, *s.exits});
  return {p.number, p.pid};
}

result<ports::started> trainers::start(const host_ptr& launcher, const ports::process_spec& spec,
                                       ports::process_host::ended on_end) {
  const auto chance = [this](double p) { return world_.random.chance(p); };
  const auto& program = spec.argv.at(0);
  if (program == "script")
    return start_scripted(launcher, script_from(spec.argv.at(1)), std::move(on_end));
  if (program == "missing" || chance(options_.fails_to_start)) {
    world_.write(launcher->name(), "run    cannot be executed");
    return failure(errc::invalid, fmt::format("cannot execute {}: no such file", program));
  }
  const auto at = place_from(spec.argv.at(1));
  auto& p = enroll(launcher);
  p.which = generation{at.which};
  p.rank = at.rank;
  p.local = at.local;
  living_[p.number] = running{launcher,
                              std::move(on_end),
                              at.world_size,
                              false,
                              false,
                              chance(options_.ignores_sigterm),
                              chance(options_.exits_on_sigterm),
                              chance(options_.leaves_stray),
                              chance(options_.hard_to_kill),
                              options_.ends_when_asked > 0 && chance(options_.ends_when_asked)};
  kept_[p.node].insert(p.number);
  world_.write(p.node, fmt::format("run    g{} rank {} pid {}", at.which, p.rank, p.pid));
  world_.tell(&observer::process_started, p);
  const auto startup = world_.between(options_.startup_min, options_.startup_max);
  if (chance(options_.dies_early))
    end_in(startup / 2, p.number, {false, 7});
  world_.events.in(startup, [this, number = p.number] { join(number); });
  return ports::started{p.number, p.pid};
}

void trainers::end_in(duration delay, std::uint64_t process, ports::exit_status how) {
  world_.events.in(delay, [this, process, how] { exit(process, how); });
}

void trainers::exit(std::uint64_t process, ports::exit_status how, const std::string& last_words) {
  const auto found = living_.find(process);
  if (found == living_.end())
    return;
  const auto life = std::move(found->second);
  living_.erase(found);
  auto& p = record(process);
  p.ended = world_.events.now();
  p.status = how;
  p.last_words = last_words;
  world_.write(p.node, fmt::format("run    g{} rank {} pid {} ended: {}", p.which.value, p.rank,
                                   p.pid, ports::to_string(how)));
  world_.tell(&observer::process_ended, p);
  if (life.leaves_stray)
    leave_stray(process_record(p));
  if (!how.success())
    break_up(record(process).which, process);
  if (const auto launcher = life.launcher.lock(); launcher && life.on_end)
    launcher->call_in(world_.between(20us, 200us), [told = life.on_end, how] { told(how); });
}

void trainers::leave_stray(const process_record& parent) {
  process_record stray = parent;
  stray.number = all_.size() + 1;
  stray.pid = ++next_pid_;
  stray.started = world_.events.now();
  stray.ended.reset();
  stray.stray = true;
  all_.push_back(stray);
  strays_.insert(stray.number);
  world_.write(stray.node, fmt::format("run    pid {} was left behind", stray.pid));
}

void trainers::signal(std::uint64_t process, int number) {
  const auto found = living_.find(process);
  if (found == living_.end())
    return;
  auto& life = found->second;
  if (number == SIGKILL) {
    record(process).killed = true;
    const auto delay = life.hard_to_kill ? world_.between(2s, 12s) : world_.between(50us, 500us);
    return end_in(delay, process, {true, SIGKILL});
  }
  if (life.ignores_sigterm || std::exchange(life.ending, true))
    return;
  if (life.exits_on_sigterm)
    end_in(world_.between(20ms, 900ms), process, {false, 128 + number});
  else
    end_in(world_.between(100us, 3ms), process, {true, number});
}

void trainers::signal_alone(std::uint64_t process, int number) {
  const auto found = living_.find(process);
  if (found == living_.end())
    return;
  const auto& life = found->second;
  if (!life.ends_when_asked || !life.joined)
    return signal(process, number);
  const auto which = record(process).which;
  if (auto& g = groups_[which]; !std::exchange(g.asked, true) && g.together_since)
    save_and_end(which);
}

bool trainers::takes_signal(const std::string& node, std::int32_t pid) const {
  return std::any_of(living_.begin(), living_.end(), [&](const auto& one) {
    const auto& p = all_.at(one.first - 1);
    return p.node == node && p.pid == pid && one.second.ends_when_asked && one.second.joined;
  });
}

/// First those of an earlier supervisor that have not been adopted: their end is waited for.
void trainers::sweep(const host_ptr& launcher, const sweeping& what) {
  const auto left = unwanted(launcher);
  for (const auto number : left)
    signal(number, SIGKILL);
  auto go_on = [this, launcher, what] {
    auto& known = kept_[launcher->name()];
    for (auto at = known.begin(); at != known.end();)
      at = record(*at).ended ? known.erase(at) : std::next(at);
    sweep_strays(launcher, what);
  };
  when_gone(launcher, left, world_.events.now() + limits::kill_within, std::move(go_on));
}

void trainers::when_gone(const host_ptr& launcher, const std::vector<std::uint64_t>& which,
                         instant at_the_latest, std::function<void()> then) {
  const bool gone = std::none_of(which.begin(), which.end(),
                                 [this](auto number) { return living_.count(number) != 0; });
  if (gone || world_.events.now() >= at_the_latest)
    return then();
  launcher->call_in(1ms, [this, launcher, which, at_the_latest, then = std::move(then)]() mutable {
    when_gone(launcher, which, at_the_latest, std::move(then));
  });
}

/// Some strays take their time to end, as long as they are given.
void trainers::sweep_strays(const host_ptr& launcher, const sweeping& what) {
  std::vector<std::uint64_t> found;
  for (const auto number : strays_) {
    const auto& p = record(number);
    if (p.node == launcher->name() && p.boot == launcher->boot())
      found.push_back(number);
  }
  const bool lingers = !found.empty() && what.order.within > 1s && world_.random.chance(0.3);
  if (lingers)
    launcher->call_in(1s, [what, count = found.size()] {
      what.waits({"a stray", count, what.order.quiet, what.order.within - 1s});
    });
  const auto takes =
      lingers ? world_.between(1001ms, what.order.within + 2ms) : world_.between(50us, 2ms);
  launcher->call_in(takes, [this, found, done = what.done] {
    for (const auto number : found) {
      if (strays_.erase(number) == 0)
        continue;
      record(number).ended = world_.events.now();
      world_.write(record(number).node, fmt::format("run    pid {} was swept", record(number).pid));
    }
    done({found.size(), 0});
  });
}

void trainers::launcher_ended(const host_ptr& launcher, ending_kind how) {
  if (how == ending_kind::crashed) {
    for (auto& [number, life] : living_)
      if (record(number).node == launcher->name() && record(number).boot == launcher->boot())
        life.on_end = nullptr;
    return;
  }
  kept_.erase(launcher->name());
  std::vector<std::uint64_t> orphans;
  for (const auto& [number, life] : living_) {
    const auto& p = record(number);
    if (p.node == launcher->name() && p.boot == launcher->boot())
      orphans.push_back(number);
  }
  for (const auto number : orphans)
    exit(number, {true, SIGKILL});
  for (auto at = strays_.begin(); at != strays_.end();) {
    auto& p = record(*at);
    const bool its_own = p.node == launcher->name() && p.boot == launcher->boot();
    if (its_own && how == ending_kind::power_cut)
      p.ended = world_.events.now();
    if (its_own && how == ending_kind::killed)
      p.beyond_reach = true;
    at = its_own && how != ending_kind::exited ? strays_.erase(at) : std::next(at);
  }
}

// ---- After a crash of the node supervisor ----

void trainers::succeeded(const host_ptr& by) {
  const auto previous = by->boot() - 1;
  for (auto& p : all_)
    if (p.node == by->name() && p.boot == previous)
      p.boot = by->boot();
  for (auto& [number, life] : living_)
    if (record(number).node == by->name() && record(number).boot == by->boot())
      life.launcher = by;
}

std::vector<ports::survivor> trainers::survivors(const host_ptr& launcher) const {
  std::vector<ports::survivor> found;
  if (const auto known = kept_.find(launcher->name()); known != kept_.end())
    for (const auto number : known->second)
      found.push_back({number, all_.at(number - 1).pid, all_.at(number - 1).local});
  return found;
}

/// An end that has come already is told now.
void trainers::adopt(const host_ptr& launcher, std::uint64_t process,
                     ports::process_host::ended on_end) {
  if (const auto& p = record(process); p.ended)
    launcher->call_in(world_.between(20us, 200us),
                      [told = std::move(on_end), how = p.status] { told(how); });
  else
    living_.at(process).on_end = std::move(on_end);
}

std::vector<std::uint64_t> trainers::unwanted(const host_ptr& launcher) const {
  std::vector<std::uint64_t> found;
  for (const auto& [number, life] : living_)
    if (all_.at(number - 1).node == launcher->name() && !life.on_end)
      found.push_back(number);
  return found;
}

// ---- Questions ----

std::size_t trainers::alive_on(const std::string& node) const {
  return static_cast<std::size_t>(std::count_if(all_.begin(), all_.end(), [&](const auto& p) {
    return p.node == node && !p.ended && !p.beyond_reach;
  }));
}

std::size_t trainers::alive() const {
  return living_.size() + strays_.size();
}

std::vector<std::uint64_t> trainers::living_ranks() const {
  std::vector<std::uint64_t> newest;
  for (const auto& [number, life] : living_) {
    const auto which = all_.at(number - 1).which;
    if (!newest.empty() && all_.at(newest.front() - 1).which < which)
      newest.clear();
    if (newest.empty() || all_.at(newest.front() - 1).which == which)
      newest.push_back(number);
  }
  return newest;
}

std::string trainers::last_words(const std::string& node, const actors::assignment& place) const {
  const auto found = std::find_if(all_.rbegin(), all_.rend(), [&](const process_record& p) {
    return p.node == node && p.which == place.which && p.local == place.local && !p.stray;
  });
  return found == all_.rend() ? std::string{} : found->last_words;
}

std::optional<std::uint64_t> trainers::find(global_rank rank) const {
  for (const auto number : living_ranks())
    if (all_.at(number - 1).rank == rank)
      return number;
  return std::nullopt;
}

std::vector<generation> trainers::together() const {
  std::vector<generation> found;
  for (const auto& [which, g] : groups_)
    if (g.together_since && !g.broken)
      found.push_back(which);
  return found;
}

std::vector<std::uint64_t> trainers::ranks_of(generation which) const {
  const auto found = groups_.find(which);
  if (found == groups_.end() || !found->second.together_since || found->second.broken)
    return {};
  std::vector<std::uint64_t> all;
  for (const auto process : found->second.joined)
    if (living_.count(process) != 0)
      all.push_back(process);
  if (all.size() != found->second.world_size)
    return {};
  std::sort(all.begin(), all.end(),
            [this](auto a, auto b) { return all_.at(a - 1).rank < all_.at(b - 1).rank; });
  return all;
}

bool trainers::training() const {
  return !together().empty();
}

duration trainers::progress() const {
  return done_;
}

} // namespace troupe::sim
