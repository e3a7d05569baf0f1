#include "tests/sim/two_masters.hpp"

#include "actors/limits.hpp"
#include "runtime/base/invariant.hpp"
#include "tests/sim/checkers/checkers.hpp"
#include "tests/sim/faults.hpp"

#include <fmt/format.h>

#include <iterator>

namespace troupe::sim {

void cut(cluster& c, const std::vector<std::string>& side, const std::string& from) {
  for (const auto& node : side) {
    c.net().hold(node, from);
    c.net().hold(from, node);
  }
}

void send_to_rival(cluster& c, const std::string& node) {
  c.net().resolve(node, cluster::master_name(), cluster::rival_name());
}

void split(cluster& c) {
  std::vector<std::string> side;
  for (std::uint32_t i = 1; i <= c.options().nodes; ++i)
    if (c.all().random.below(2) == 0)
      side.push_back(cluster::node_name_of(i));
  cut(c, side, cluster::master_name());
  c.run_for(c.all().between(0ms, 3s));
  c.start_master(cluster::rival_name());
  for (const auto& node : side)
    send_to_rival(c, node);
}

namespace {

constexpr std::uint32_t nodes = 4;
constexpr auto good_end_within = 600s;

/// A job that saves all the time, for which two nodes are enough.
cluster_options a_job_that_saves(std::uint64_t seed) {
  random_source random(seed);
  cluster_options o;
  o.seed = random.next();
  o.nodes = o.nodes_max = nodes;
  o.nodes_min = 2;
  o.max_restarts = 100;
  o.trainers.training = 100s; // both worlds together; the cut has healed long before
  o.train_on_within = 300s;
  o.connect_within = 300s;
  auto& k = o.checkpoints;
  k.every = std::chrono::milliseconds(150 + random.below(1'000));
  k.write_max = k.write_min + std::chrono::milliseconds(random.below(800));
  k.save_within = std::chrono::milliseconds(2'000 + random.below(6'000));
  k.shared = random.chance(0.6);
  k.replicated = random.chance(0.4);
  k.in_place = random.chance(0.25);
  k.goes_back = random.chance(0.5) ? 0.5 : 0;
  k.keep.keep_latest = random.chance(0.8) ? 1 + random.below(3) : 0;
  return o;
}

void watch(cluster& c) {
  const auto& k = c.options().checkpoints;
  c.all().observers = {
      checkers::newest_master_commands(c.all()),
      checkers::one_world_per_generation(c.all()),
      checkers::processes_follow_the_generation(c.all(), c.training()),
      checkers::start_after_prepared(c.all()),
      checkers::nothing_left_behind(c.all(), c.training()),
      checkers::actors_are_sound(c.all()),
      checkers::queues_are_bounded(c.all()),
      checkers::checkpoints_are_kept(c.all()),
      checkers::complete_steps_stay(c.all(), k.shared, k.keep),
      checkers::places_are_sound(c.all(), c.saves()),
  };
}

void happens(cluster& c, const std::string& what) {
  const auto done = inject(c, words_of(what));
  invariant(done.has_value(), what);
}

/// A node asks another master, loses its supervisor or its power, or the disk is not what it was.
void change_something(cluster& c) {
  static constexpr const char* faults[] = {
      "node ? crashes",  "node ? loses power", "worker ? is killed",  "place ? is slow",
      "place ? is full", "place ? recovers",   "place ? loses power", "node ? freezes",
      "node ? thaws",    "place ? decays",
  };
  auto& chance = c.all().random;
  const auto node = cluster::node_name_of(static_cast<std::uint32_t>(1 + chance.below(nodes)));
  c.net().resolve(node, cluster::master_name(),
                  chance.below(2) == 0 ? cluster::master_name() : cluster::rival_name());
  if (chance.below(2) == 0)
    c.net().break_links(node);
  if (chance.below(2) == 0)
    happens(c, faults[chance.below(std::size(faults))]);
  if (chance.below(3) == 0)
    for (std::uint32_t i = 1; i <= nodes; ++i)
      happens(c, fmt::format("node {} starts", i));
}

/// All is well again, and there is one master: a node that knows of no newer one would wait at the
/// older one for others, which never come.
void heal_all(cluster& c) {
  c.crash(cluster::master_name(), ending_kind::killed);
  c.net().calm();
  c.saves().heal();
  for (std::uint32_t i = 1; i <= nodes; ++i) {
    const auto node = cluster::node_name_of(i);
    send_to_rival(c, node);
    c.resume(node);
    happens(c, fmt::format("node {} starts", i));
    c.net().break_links(node);
  }
}

void live(cluster& c) {
  c.start_everything();
  c.run_for(c.all().between(0ms, 8s));
  split(c);
  // Each side has a world of its own after a while.
  c.run_for(limits::recall_within + c.all().between(0ms, 5s));
  for (int change = 0; change < 12 && !c.all().broken; ++change) {
    c.run_for(c.all().between(0ms, 2s));
    change_something(c);
  }
  heal_all(c);
}

void demand_a_good_end(cluster& c) {
  c.run_for(good_end_within, [&c] { return c.outcomes().size() == nodes; });
  auto& w = c.all();
  if (!w.broken && c.outcomes().size() != nodes)
    w.blame("the_job_ends", fmt::format("{} after everything was healed the job is not over",
                                        in_words(good_end_within)));
  for (const auto& [node, left] : c.outcomes())
    if (!w.broken && !left.success)
      w.blame("the_job_ends", fmt::format("{}: {}", node, left.reason));
}

} // namespace

run_outcome run_two_masters(const run_options& o) {
  cluster c(a_job_that_saves(o.seed));
  c.all().story.on_line = o.on_line;
  watch(c);
  live(c);
  demand_a_good_end(c);
  return outcome_of(c);
}

} // namespace troupe::sim
