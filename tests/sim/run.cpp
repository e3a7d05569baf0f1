#include "tests/sim/run.hpp"

#include "messages/kinds.hpp"
#include "runtime/base/generations.hpp"
#include "tests/sim/checkers/checkers.hpp"
#include "tests/sim/two_masters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

namespace troupe::sim {

namespace {

/// How the directories are used.
void draw_places(checkpoint_options& k, random_source& random) {
  k.replicated = random.chance(0.3);
  k.in_place = random.chance(0.25);
  k.shared_with_people = random.chance(0.3);
  if (random.chance(0.8))
    k.keep.keep_latest = 1 + random.below(4);
  if (random.chance(0.2))
    k.keep.keep_every = 1 + random.below(10);
}

void draw_copies(redundancy& r, random_source& random, std::uint32_t nodes) {
  r.parity = static_cast<std::uint32_t>(1 + random.below(2));
  r.members = std::max(nodes, r.parity + 1);
  r.members -= static_cast<std::uint32_t>(random.below(r.members - r.parity));
}

/// A job whose saves are what matters.
void draw_storage(cluster_options& c, random_source& random, std::uint32_t nodes) {
  c.nodes = nodes > 0 ? nodes : static_cast<std::uint32_t>(2 + random.below(4));
  c.slots = static_cast<std::uint32_t>(1 + random.below(2));
  c.unit = 1;
  c.nodes_max = c.nodes - static_cast<std::uint32_t>(c.nodes > 2 ? random.below(2) : 0);
  c.nodes_min = random.chance(0.6) ? c.nodes_max : std::max(1u, c.nodes_max - 1);
  c.max_restarts = 100;
  c.job_restarts.reset();
  c.relaunches_max.reset();
  c.without_progress_max.reset();
  c.trainers.training = std::chrono::milliseconds(8'000 + random.below(25'000));
  c.trainers.fails_to_start = c.trainers.dies_early = 0;
  auto& k = c.checkpoints;
  k.every = std::chrono::milliseconds(150 + random.below(1'500));
  k.write_max = k.write_min + std::chrono::milliseconds(random.below(800));
  k.copies = {};
  if (random.chance(0.4))
    draw_copies(k.copies, random, c.nodes_max);
  k.tracked_by_people = k.shared_with_people && random.chance(0.5);
  k.goes_back = random.chance(0.5) ? 0.5 : 0;
}

/// Some programs have no handler, at all ranks or at some; some take longer than they are waited
/// for.
void draw_planned_end(cluster_options& c, random_source& random) {
  const auto within = std::chrono::milliseconds(500 + random.below(6'000));
  c.planned_end = {std::chrono::milliseconds(200 + random.below(4'000)), within};
  c.trainers.ends_when_asked = random.chance(0.7) ? 1 : random.unit();
  c.trainers.saves_within = std::chrono::milliseconds(10 + random.below(6'000));
}

/// Options within sane limits, drawn by the seed: what works only with the defaults does not work.
cluster_options draw_options(const run_options& o) {
  random_source random(o.seed);
  cluster_options c;
  c.seed = random.next();
  c.nodes = o.nodes > 0 ? o.nodes : static_cast<std::uint32_t>(4 + random.below(13));
  c.slots = static_cast<std::uint32_t>(1 + random.below(c.nodes > 32 ? 2 : 4));
  c.nodes_max = c.nodes - static_cast<std::uint32_t>(random.below(3));
  c.nodes_min = random.chance(0.5) ? c.nodes_max : std::max(1u, c.nodes_max / 2);
  c.max_restarts = static_cast<std::uint32_t>(random.below(6));
  c.last_call.reset();
  if (random.chance(0.5))
    c.last_call = std::chrono::milliseconds(200 + random.below(3'000));
  const auto unit = static_cast<std::uint32_t>(1 + random.below(3));
  if (random.chance(0.3) && c.nodes_max / unit * unit >= c.nodes_min)
    c.unit = unit;
  if (random.chance(0.2))
    c.relaunches_max = static_cast<std::uint32_t>(random.below(4));
  if (random.chance(0.1))
    c.job_restarts = static_cast<std::uint32_t>(random.below(6));
  if (random.chance(0.2))
    c.without_progress_max = static_cast<std::uint32_t>(1 + random.below(4));
  c.stop_within = std::chrono::milliseconds(500 + random.below(5'000));
  c.lease = limits::lease_min + std::chrono::milliseconds(random.below(4'000));
  c.return_within = std::chrono::milliseconds(200 + random.below(2'000));
  c.hesitation = random.chance(0.5) ? 0 : 0.2 * random.unit();
  c.drift_ppm_max = random.chance(0.5) ? 0 : 500;
  auto& t = c.trainers;
  t.training = std::chrono::milliseconds(3'000 + random.below(30'000));
  const auto sometimes = [&random](double most) {
    return random.chance(0.7) ? 0 : most * random.unit();
  };
  t.fails_to_start = sometimes(0.02);
  t.dies_early = sometimes(0.02);
  t.ignores_sigterm = sometimes(0.5);
  t.exits_on_sigterm = sometimes(0.8);
  t.leaves_stray = sometimes(0.3);
  t.hard_to_kill = sometimes(0.1);
  t.hangs = sometimes(1);
  auto& k = c.checkpoints;
  k.shared = random.chance(0.5);
  if (random.chance(0.4))
    k.every = std::chrono::milliseconds(500 + random.below(5'000));
  k.write_max = k.write_min + std::chrono::milliseconds(random.below(3'000));
  k.save_within = std::chrono::milliseconds(2'000 + random.below(6'000));
  k.fails = sometimes(0.05);
  if (random.chance(0.3))
    draw_copies(k.copies, random, 4);
  draw_places(k, random);
  if (o.of == life::storage)
    draw_storage(c, random, o.nodes);
  if (random.chance(0.3))
    draw_planned_end(c, random);
  c.sizes_said_by_nodes = random.chance(0.3);
  if (o.of != life::storage && random.chance(0.3))
    c.machines = machines_options{static_cast<std::uint32_t>(random.below(3)), 2s};
  return c;
}

/// Whether each save of a job has to succeed where nothing goes wrong: none is refused for what
/// people or a later save have written, or a node has that is no member any more; and there is time
/// for all that may wait before it.
bool must_all_succeed(const cluster_options& o) {
  const auto& k = o.checkpoints;
  return k.shared && !k.shared_with_people && k.goes_back == 0 &&
         4 * o.slots * k.write_max < k.save_within;
}

/// Nodes come one after the other, mostly.
void let_nodes_come(cluster& c) {
  auto& w = c.all();
  const auto within = w.random.chance(0.5) ? duration(50ms) : duration(4s);
  w.events.in(w.between({}, within), [&c] {
    if (!c.up(cluster::master_name()))
      c.start_master();
  });
  for (std::uint32_t i = 1; i <= c.options().nodes; ++i)
    w.events.in(w.between({}, within), [&c, name = cluster::node_name_of(i)] {
      if (!c.up(name))
        c.start_node(name);
    });
}

/// One node of a job whose workers can be asked to end is told to go, sometimes.
void let_a_node_leave(cluster& c) {
  auto& w = c.all();
  if (!c.options().planned_end || !w.random.chance(0.7))
    return;
  const auto name =
      cluster::node_name_of(1 + static_cast<std::uint32_t>(w.random.below(c.options().nodes)));
  w.events.in(w.between(1s, faults_last), [&c, name] {
    if (c.up(name))
      c.interrupt(name, SIGTERM);
  });
}

void heal(cluster& c) {
  c.all().write("-", "! everything is healed");
  c.net().calm();
  c.disk().fault.reset();
  c.disk().append_max = 3ms;
  c.saves().heal();
  auto& t = c.training().options();
  t.fails_to_start = t.dies_early = t.hard_to_kill = 0;
  const auto revive = [&c](const std::string& name) {
    c.resume(name);
    if (c.up(name) || c.verdict() || c.has_left(name))
      return;
    name == cluster::master_name() ? c.start_master() : c.start_node(name);
  };
  revive(cluster::master_name());
  for (std::uint32_t i = 1; i <= c.options().nodes; ++i)
    revive(cluster::node_name_of(i));
}

/// A master whose disk had failed may still end of that; then its operator starts it again.
void let_the_past_pass(cluster& c) {
  c.run_for(last_consequences, [&c] { return c.over(); });
  if (!c.all().broken && !c.verdict() && !c.up(cluster::master_name()))
    c.start_master();
}

void demand_an_end(cluster& c) {
  c.run_for(alive_again_within, [&c] { return c.over(); });
  auto& w = c.all();
  if (w.broken)
    return;
  if (!c.over())
    return w.blame("the_job_ends",
                   fmt::format("{} after everything was healed the job is not over{}",
                               in_words(alive_again_within),
                               c.verdict() ? ", though decided" : ""));
  // What was on its way when the last process ended.
  c.run_for(2 * limits::dial_within);
  if (!w.broken)
    w.tell(&observer::finished);
}

} // namespace

run_outcome run(const run_options& o) {
  if (o.of == life::two_masters)
    return run_two_masters(o);
  const auto options = draw_options(o);
  cluster c(options);
  auto& w = c.all();
  w.story.on_line = o.on_line;
  w.observers = checkers::all(w, c.training(), options.max_restarts,
                              {options.nodes_min, options.nodes_max, options.unit, {}},
                              options.lease, options.checkpoints.shared, options.checkpoints.keep);
  w.observers.push_back(checkers::places_are_sound(w, c.saves()));
  w.observers.push_back(checkers::held_states_stay(w));
  if (must_all_succeed(options))
    w.observers.push_back(checkers::losses_have_a_cause(w, c.saves()));
  const auto faults =
      o.faults ? *o.faults
               : plan::random(w.random, faults_last, options.nodes, o.of == life::storage);
  w.write("-", fmt::format("seed {}: {} nodes ({} to {} take part), {} slots, {} restarts, plan {}",
                           o.seed, options.nodes, options.nodes_min, options.nodes_max,
                           options.slots, options.max_restarts, faults.name));
  let_nodes_come(c);
  faults.schedule(c, faults_last);
  let_a_node_leave(c);
  c.run_for(faults_last, [&c] { return c.over(); });
  if (!w.broken && !c.over())
    heal(c);
  if (!w.broken && !c.over())
    let_the_past_pass(c);
  if (!w.broken)
    demand_an_end(c);
  return outcome_of(c);
}

run_outcome outcome_of(cluster& c) {
  const auto& w = c.all();
  run_outcome out;
  out.digest = w.story.digest();
  out.lines = w.story.lines();
  out.simulated = c.now().time_since_epoch();
  out.nodes = c.options().nodes;
  out.processes = c.training().all().size();
  out.success = c.verdict() && c.verdict()->success;
  out.broken = w.broken;
  out.last_lines.assign(w.story.tail().begin(), w.story.tail().end());
  for (const auto& p : c.training().all())
    out.generations = std::max(out.generations, count_of(p.which));
  return out;
}

} // namespace troupe::sim
