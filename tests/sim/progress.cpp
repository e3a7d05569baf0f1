#include "tests/sim/progress.hpp"

#include <algorithm>
#include <utility>

namespace troupe::sim {

namespace {

std::uint64_t nanoseconds(instant at) {
  return static_cast<std::uint64_t>(at.time_since_epoch() / std::chrono::nanoseconds(1));
}

constexpr auto look_takes = 5ms, dump_takes = 80ms;

} // namespace

class sim_progress_host final : public diag::progress_host {
 public:
  sim_progress_host(progress& of, host_ptr launcher) : of_(of), launcher_(std::move(launcher)) {}

  void watch(const std::vector<diag::watched_process>& processes) override {
    watched_ = processes;
    since_ = of_.now();
  }

  std::vector<diag::page_reading> read(const std::vector<std::uint32_t>& local_ranks) override {
    std::vector<diag::page_reading> all;
    for (const auto local : local_ranks)
      if (const auto* p = at(local))
        all.push_back(
            {local, of_.every ? std::optional(of_.page_of(*p, since_, *launcher_)) : std::nullopt});
    return all;
  }

  duration slept() override { return {}; }

  void look(const std::vector<std::uint32_t>& local_ranks, looked done) override {
    std::vector<diag::process_look> all;
    for (const auto local : local_ranks)
      if (const auto* p = at(local))
        all.push_back(of_.look_at(*p));
    later(look_takes, [done = std::move(done), all = std::move(all)] { done(all); });
  }

  void dump(const std::vector<std::uint32_t>& local_ranks, duration, dumped done) override {
    diag::dump_result all;
    for (const auto local : local_ranks)
      if (const auto* p = at(local))
        all.stacks.push_back(stacks_of(*p));
    later(dump_takes, [done = std::move(done), all = std::move(all)] { done(all); });
  }

  void read_crashes(std::uint64_t generation, const std::vector<diag::crashed_process>& processes,
                    duration, crashes_read done) override {
    std::vector<diag::crash_report> all;
    for (const auto& p : processes)
      all.push_back({p.rank, "strlen() at crash.py:12 (parse)",
                     "/run/stacks/fatal/" + std::to_string(generation) + "/rank-" +
                         std::to_string(p.rank) + ".txt",
                     ""});
    later(dump_takes, [done = std::move(done), all = std::move(all)] { done(all); });
  }

 private:
  const diag::watched_process* at(std::uint32_t local) const {
    const auto found = std::find_if(watched_.begin(), watched_.end(),
                                    [local](const auto& p) { return p.local_rank == local; });
    return found == watched_.end() ? nullptr : &*found;
  }
  void later(duration in, std::function<void()> then) {
    of_.world_.events.in(in, [launcher = launcher_, then = std::move(then)] {
      if (launcher->alive())
        then();
    });
  }
  diag::process_stacks stacks_of(const diag::watched_process& p) const {
    const bool waits = of_.still_ != p.rank;
    diag::process_stacks s;
    s.rank = p.rank;
    s.world_size = of_.world_size;
    s.pid = static_cast<std::uint64_t>(p.pid);
    diag::thread_stacks main;
    main.id = s.pid;
    main.state = 'S';
    main.python = {{waits ? "backward" : "load", waits ? "torch.py" : "data.py", 12},
                   {"train", "train.py", 40}};
    s.threads.push_back(main);
    return s;
  }

  progress& of_;
  host_ptr launcher_;
  std::vector<diag::watched_process> watched_;
  instant since_;
};

std::shared_ptr<diag::progress_host> progress::host_of(const host_ptr& launcher) {
  return std::make_shared<sim_progress_host>(*this, launcher);
}

void progress::stand_still(global_rank rank) {
  still_ = rank;
  still_since_ = now();
}

void progress::go_on() {
  still_.reset();
}

diag::page_view progress::page_of(const diag::watched_process& p, instant since,
                                  const host& on) const {
  const auto local = [&](instant at) { return nanoseconds(on.now() - (now() - at)); };
  const auto until = still_ ? std::max(still_since_, since) : now();
  const auto steps = static_cast<std::uint64_t>((until - since) / *every);
  const auto made = since + steps * *every;
  const bool is_still = still_ == p.rank, waits = still_ && !is_still;
  diag::page_view v;
  v.pid = static_cast<std::uint64_t>(p.pid);
  using diag::feed;
  for (const auto f : {feed::steps_by_optimizer, feed::collectives, feed::collective_ends,
                       feed::input, feed::phase_changes})
    v.feeds |= static_cast<std::uint64_t>(f);
  v.step = v.steps_made = steps;
  v.step_ns = local(made);
  v.step_longest_ns = nanoseconds(instant(*every));
  const auto bucket = diag::bucket_of(v.step_longest_ns);
  v.step_durations.counts[bucket] = static_cast<std::uint32_t>(steps);
  v.step_durations.total = steps;
  v.phase_now = is_still ? diag::phase::input : diag::phase::forward;
  v.phase_ns = local(made);
  diag::communicator_view world;
  world.name = "default_pg";
  world.members = world_size;
  world.kind = diag::collective::all_reduce;
  world.left = steps;
  world.entered = steps + (waits ? 1 : 0);
  world.entered_ns = world.left_ns = local(made);
  v.communicators.push_back(world);
  return v;
}

diag::process_look progress::look_at(const diag::watched_process& p) const {
  diag::process_look look;
  look.local_rank = p.local_rank;
  look.pid = p.pid;
  look.state = 'S';
  look.threads = {{p.pid, {}, still_ == p.rank ? 1u : 2u}};
  look.place = still_ == p.rank ? "read() at data.py:12 (load)" : "torch.py:12 (backward)";
  return look;
}

} // namespace troupe::sim
