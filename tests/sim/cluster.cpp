#include "tests/sim/cluster.hpp"

#include "runtime/base/invariant.hpp"
#include "tests/sim/cluster_trees.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::sim {

namespace {

constexpr const char* job_name = "job";
constexpr auto progress_after = 5s;
constexpr std::uint64_t events_at_one_instant_max = 1'000'000;
/// Newer than that of any master that begins before it; real ones go by the clock.
constexpr term rival_term{1'000};

/// 7 of "n7".
std::uint64_t number_in(const std::string& node) {
  return std::stoul(node.substr(1));
}

link::options links_of(const cluster_options& o) {
  link::options links;
  links.lease = o.lease;
  return links;
}

} // namespace

const std::string& cluster::master_name() {
  static const std::string name = "master";
  return name;
}

const std::string& cluster::rival_name() {
  static const std::string name = "rival";
  return name;
}

std::string cluster::node_name_of(std::uint32_t number) {
  return fmt::format("n{}", number);
}

cluster::cluster(const cluster_options& options)
    : options_(options), world_(options.seed), network_(world_, links_of(options)),
      trainers_(world_, options.trainers), stores_(world_),
      checkpoints_(world_, trainers_, options.checkpoints), progress_(world_),
      channel_(world_, trainers_, progress_), probes_(world_), loads_(checkpoints_),
      trees_(std::make_unique<trees>()) {
  for (std::uint32_t i = 1; i <= options_.nodes; ++i)
    nodes_[node_name_of(i)];
  for (const auto* name : {&master_name(), &rival_name()})
    masters_.try_emplace(*name, world_);
  masters_.at(rival_name()).disk.openings = rival_term;
  if (options_.machines)
    machines_.emplace(world_, *options_.machines, options_.nodes, [this](const std::string& name) {
      if (!verdict_ && !up(name))
        start_node(name);
    });
  if (options_.checkpoints.every > duration::zero()) {
    trainers_.options().when_together = [this](generation which) { loads_.begin(which); };
    trainers_.options().before_end = [this](generation which) { checkpoints_.save_last(which); };
    save_in_turn();
  }
}

void cluster::save_in_turn() {
  world_.events.in(options_.checkpoints.every, [this] {
    checkpoints_.save_next();
    save_in_turn();
  });
}

cluster::~cluster() {
  // No observer watches any more, and what dies now may not plan anything.
  world_.observers.clear();
  world_.story.on_line = nullptr;
  for (auto& [name, n] : nodes_)
    if (n.process) {
      checkpoints_.launcher_ends(n.process);
      n.process->end(ending_kind::power_cut);
    }
  for (auto& [name, m] : masters_)
    if (m.process)
      m.process->end(ending_kind::power_cut);
  if (shell_.process)
    shell_.process->end(ending_kind::power_cut);
  world_.events.forget();
}

// ---- Starting ----

const host_ptr& cluster::boot(const std::string& name, machine& on) {
  invariant(!up(name), "it runs already");
  if (std::exchange(on.dark, false))
    network_.machine_is_back(name);
  host_options o;
  o.hesitation = options_.hesitation;
  o.in_order = options_.in_order;
  if (options_.drift_ppm_max > 0)
    o.drift_ppm = static_cast<std::int64_t>(world_.random.below(2 * options_.drift_ppm_max + 1)) -
                  options_.drift_ppm_max;
  return on.process = std::make_shared<host>(world_, name, ++on.boots, o);
}

/// As actor-master does it: what the master was not told it takes from a node, or from its journal.
void cluster::tell_sizes(actors::master_options& o, const sim_disk& disk) const {
  o.rendezvous.nodes_min = options_.nodes_min;
  o.rendezvous.nodes_max = options_.nodes_max;
  if (!options_.sizes_said_by_nodes)
    return;
  auto& known = o.membership.options;
  known.acceptable = [](const messages::job_words&) -> result<void> { return {}; };
  for (const auto& record : disk.all())
    if (record.is<messages::JobOptionsTaken>()) {
      auto taken = record.as<messages::JobOptionsTaken>().read();
      known.taken = messages::read_job_words(taken->getOptions());
      known.taken_from = taken->getNode().cStr();
      known.just_taken = true;
    }
  if (!known.taken)
    o.rendezvous.nodes_min = o.rendezvous.nodes_max = 1;
}

/// Its nodes' links end with the process.
void cluster::begin_anew(const host_ptr& h) {
  if (!h->alive())
    return;
  masters_.at(h->name()).begins_anew = true;
  h->stop_tree();
}

void cluster::start_master(const std::string& name) {
  auto& m = masters_.at(name);
  const auto& h = boot(name, m);
  auto& at = trees_->masters[name] = {};
  actors::master_options o;
  o.membership.job = job_name;
  o.membership.return_within = options_.return_within;
  o.rendezvous.planned_end = options_.planned_end;
  tell_sizes(o, m.disk);
  o.rendezvous.last_call = options_.last_call;
  o.rendezvous.unit = options_.unit;
  o.rendezvous.join_timeout = options_.join_timeout;
  o.rendezvous.relaunches_max = options_.relaunches_max;
  o.recovery.max_restarts = options_.max_restarts;
  o.recovery.job_restarts = options_.job_restarts;
  o.recovery.without_progress_max = options_.without_progress_max;
  o.recovery.progress_after = progress_after;
  o.recovery.checks_nodes = options_.checks_nodes;
  o.network_check.within = options_.check_within;
  o.network_check.bytes = options_.check_bytes;
  o.network_check.repeats = 1;
  o.gateway.listen_on = {name, master_port};
  actors::master_events events;
  events.on_listening = [](const ports::endpoint&) {};
  events.on_verdict = [this, h = h](const actors::recovery_core::verdict& v) {
    world_.events.in({}, [this, h, v] { master_decided(h, v); });
  };
  events.on_job_options = [this, h = h](const messages::job_words&) {
    world_.events.in({}, [this, h] { begin_anew(h); });
  };
  events.on_everyone_left = [this, h = h] { world_.events.in({}, [h] { h->stop_tree(); }); };
  actors::master_world ports{network_.transport_of(h), m.disk.store_of(h)};
  if (machines_)
    ports.cluster = machines_->seen_by([h = std::weak_ptr<host>(h)](std::function<void()> what) {
      if (const auto master = h.lock(); master && master->alive())
        master->call(std::move(what));
    });
  h->run_tree(actors::master_tree(ports, o, at, events),
              [this, h = h](const std::optional<error>&) { gone(h, ending_kind::exited); });
}

void cluster::start_node(const std::string& name) {
  auto& m = nodes_[name];
  boot(name, m);
  m.kept = std::make_shared<testing::fake_keeping>();
  m.wishes_to_end.clear();
  // Independent of what else was drawn, so that a node keeps its number from run to run of a
  // transcript.
  m.seed = options_.seed * 1'000'003 + number_in(name) * 1'009 + m.boots;
  outcomes_.erase(name);
  supervise(name);
}

/// The tree of a node supervisor, one life of it.
void cluster::supervise(const std::string& name) {
  auto& m = nodes_.at(name);
  const auto& h = m.process;
  m.bulk = std::make_shared<sim_bulk_links>(network_, h, job_name);
  auto& at = trees_->nodes[name] = {};
  actors::node_options o;
  o.uplink.job = job_name;
  o.uplink.node = name;
  o.uplink.address = name;
  o.uplink.bulk_port = m.bulk->where().port;
  o.uplink.slots = options_.slots;
  o.uplink.stop_within = options_.stop_within;
  if (options_.sizes_said_by_nodes)
    o.uplink.of_job = {{"--nnodes",
                        fmt::format("{}:{}", options_.nodes_min, options_.nodes_max),
                        false,
                        false,
                        {}}};
  o.uplink.master = ports::to_string({master_name(), master_port});
  o.uplink.connect_within = options_.connect_within;
  o.uplink.train_on_within = options_.train_on_within;
  o.uplink.lease = options_.lease;
  o.agent.node = name;
  o.agent.slots = options_.slots;
  o.agent.stop_within = options_.stop_within;
  if (options_.planned_end)
    o.agent.leave_within = options_.planned_end->within;
  o.program.spec = &trainers::spec_of;
  o.program.explain = [this, name](const actors::assignment& place,
                                   const ports::exit_status& s) -> actors::exit_report {
    actors::exit_report why;
    why.message = ports::to_string(s);
    why.log_tail = trainers_.last_words(name, place);
    return why;
  };
  o.master = {master_name(), master_port};
  o.seed = m.seed;
  actors::node_events events;
  events.on_over = [this, name, which = h->boot()](const actors::node_outcome& outcome) {
    world_.events.in({}, [this, name, which, outcome] { node_over(name, which, outcome); });
  };
  const actors::node_world ports{network_.transport_of(h),
                                 trainers_.host_of(h),
                                 stores_.host_of(h),
                                 m.kept,
                                 checkpoints_.host_of(h),
                                 checkpoints_.copier_of(h),
                                 progress_.host_of(h),
                                 channel_.host_of(h),
                                 m.bulk,
                                 probes_.host_of(h)};
  h->run_tree(actors::node_tree(ports, o, at, events),
              [this, h = h](const std::optional<error>&) { gone(h, ending_kind::exited); });
}

void cluster::start_everything() {
  start_master();
  for (const auto& [name, n] : nodes_)
    start_node(name);
}

// ---- Ending ----

/// The launcher has nothing more to do: its program stops the tree and returns.
void cluster::node_over(const std::string& name, std::uint64_t boot,
                        const actors::node_outcome& o) {
  const auto& h = nodes_.at(name).process;
  if (!h || h->boot() != boot || !h->alive())
    return;
  world_.write(name, fmt::format("over   {}: {}", o.success ? "success" : "failure", o.reason));
  outcomes_.insert_or_assign(name, o);
  h->stop_tree();
}

void cluster::master_decided(const host_ptr& h, const actors::recovery_core::verdict& v) {
  if (!h->alive())
    return;
  world_.write(h->name(),
               fmt::format("over   {}: {}", v.success ? "success" : "failure", v.reason));
  verdict_ = v;
  // Its program waits for the nodes to leave.
}

void cluster::gone(const host_ptr& h, ending_kind how) {
  if (!h->alive())
    return;
  checkpoints_.launcher_ends(h);
  h->end(how);
  network_.host_ended(h, how == ending_kind::power_cut);
  const auto master = masters_.find(h->name());
  if (master == masters_.end())
    return launcher_ended(h, how);
  master->second.disk.process_ended();
  const bool begins_anew = std::exchange(master->second.begins_anew, false);
  if (begins_anew && how == ending_kind::exited)
    world_.events.in({}, [this, name = h->name()] {
      if (!up(name))
        start_master(name);
    });
}

void cluster::launcher_ended(const host_ptr& h, ending_kind how) {
  nodes_.at(h->name()).bulk.reset();
  trainers_.launcher_ended(h, how);
  stores_.launcher_ended(h, how);
  checkpoints_.launcher_ended(h, how);
}

void cluster::crash(const std::string& name, ending_kind how) {
  if (!up(name))
    return;
  const auto master = masters_.find(name);
  auto& m = master != masters_.end() ? master->second : nodes_.at(name);
  if (how == ending_kind::power_cut)
    m.dark = true;
  if (!std::exchange(m.successor_due, false))
    return gone(m.process, how);
  // Only the keeper was there.
  world_.write(name, "down   before its node supervisor was back");
  network_.host_ended(m.process, how == ending_kind::power_cut);
  launcher_ended(m.process, how);
  world_.tell(&observer::ended, name, how);
}

void cluster::crash_supervisor(const std::string& name, duration rest) {
  const auto h = find(name);
  if (!h || masters_.count(name) != 0)
    return;
  auto& m = nodes_.at(name);
  m.kept->crash();
  m.successor_due = true;
  gone(h, ending_kind::crashed);
  world_.events.in(rest, [this, name, crashed = h] {
    if (nodes_.at(name).process == crashed && nodes_.at(name).successor_due)
      succeed(name);
  });
}

void cluster::succeed(const std::string& name) {
  auto& m = nodes_.at(name);
  m.successor_due = false;
  trainers_.succeeded(boot(name, m));
  supervise(name);
  for (const int signal : m.wishes_to_end)
    hear(name, signal);
}

void cluster::pause(const std::string& name) {
  if (const auto h = find(name))
    h->pause();
}

void cluster::resume(const std::string& name) {
  if (const auto h = find(name))
    h->resume();
}

// ---- Questions ----

host_ptr cluster::find(const std::string& name) const {
  host_ptr h;
  if (const auto master = masters_.find(name); master != masters_.end())
    h = master->second.process;
  else if (const auto found = nodes_.find(name); found != nodes_.end())
    h = found->second.process;
  return h && h->alive() ? h : nullptr;
}

bool cluster::up(const std::string& name) const {
  const auto n = nodes_.find(name);
  return find(name) != nullptr || (n != nodes_.end() && n->second.successor_due);
}

bool cluster::over() const {
  const auto is_up = [this](const auto& m) { return up(m.first); };
  return verdict_ && std::none_of(nodes_.begin(), nodes_.end(), is_up) &&
         std::none_of(masters_.begin(), masters_.end(), is_up);
}

// ---- Time ----

void cluster::run_until(instant when, const std::function<bool()>& enough) {
  std::uint64_t at_this_instant = 0;
  while (!world_.broken && !(enough && enough())) {
    const auto next = world_.events.next();
    if (!next || *next > when) {
      world_.events.pass(when);
      return;
    }
    at_this_instant = *next == now() ? at_this_instant + 1 : 0;
    if (at_this_instant > events_at_one_instant_max)
      return world_.blame("time_passes", "more and more happens at the same instant");
    world_.events.step();
    world_.tell(&observer::time_passed, world_.events.now());
  }
}

void cluster::run_for(duration d, const std::function<bool()>& enough) {
  run_until(now() + d, enough);
}

} // namespace troupe::sim
