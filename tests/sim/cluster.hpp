#pragma once

#include "actors/master/recovery/recovery_core.hpp"
#include "actors/node_supervisor/training/agent/agent_core.hpp"
#include "messages/kinds.hpp"
#include "tests/fakes/keeping.hpp"
#include "tests/sim/bulk.hpp"
#include "tests/sim/channel.hpp"
#include "tests/sim/checkpoints.hpp"
#include "tests/sim/host.hpp"
#include "tests/sim/journal.hpp"
#include "tests/sim/loads.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/network.hpp"
#include "tests/sim/probes.hpp"
#include "tests/sim/processes.hpp"
#include "tests/sim/progress.hpp"
#include "tests/sim/stores.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {
struct master_options;
} // namespace troupe::actors

namespace troupe::sim {

struct cluster_options {
  std::uint64_t seed = 1;
  std::uint32_t nodes = 2;
  std::uint32_t slots = 1;
  std::uint32_t nodes_min = 2;
  std::uint32_t nodes_max = 2;
  std::uint32_t max_restarts = 3;
  std::optional<std::uint32_t> job_restarts;
  std::optional<std::uint32_t> relaunches_max;
  /// The job is one whose nodes are replaced.
  std::optional<machines_options> machines;
  std::optional<std::uint32_t> without_progress_max;
  std::optional<duration> last_call = 1s;
  std::uint32_t unit = 1;
  /// The nodes were told nodes_min and nodes_max, and the master was not.
  bool sizes_said_by_nodes = false;
  duration join_timeout = 120s;
  /// Nodes are checked before they take part, with messages of so many bytes.
  bool checks_nodes = false;
  std::uint64_t check_bytes = 64u << 10;
  duration check_within = 10s;
  duration stop_within = 5s;
  /// Workers are asked to save and end before a planned change.
  std::optional<actors::planned_end_options> planned_end;
  /// Of links and of membership.
  duration lease = limits::lease;
  duration return_within = limits::return_within;
  duration connect_within = limits::connect_within;
  /// Shorter than the product's, so that a node that missed the verdict ends within a run.
  duration train_on_within = 90s;
  trainer_options trainers;
  checkpoint_options checkpoints;
  double hesitation = 0;
  bool in_order = false;
  std::int64_t drift_ppm_max = 0;
};

/// A whole job in one thread: a master, a rival of it if wanted, and N nodes, each a process of its
/// own with the real actor trees of actors/topology.cpp on simulated ports. The caller plays
/// operator and fate.
class cluster {
 public:
  explicit cluster(const cluster_options& options);
  ~cluster();
  cluster(const cluster&) = delete;
  cluster& operator=(const cluster&) = delete;

  static constexpr std::uint16_t master_port = 29'400;
  static const std::string& master_name();
  /// Of a second master of the same job, with a disk of its own. Nodes find it where
  /// `network::resolve` says so.
  static const std::string& rival_name();
  static std::string node_name_of(std::uint32_t number); ///< 1 → "n1"

  world& all() { return world_; }
  sim::network& net() { return network_; }
  sim::trainers& training() { return trainers_; }
  sim::checkpoints& saves() { return checkpoints_; }
  sim::progress& pages() { return progress_; }
  sim::channel& talk() { return channel_; }
  sim::probes& devices() { return probes_; }
  sim_disk& disk() { return masters_.at(master_name()).disk; }
  const cluster_options& options() const { return options_; }

  void start_master(const std::string& name = master_name());
  void start_node(const std::string& name);
  void start_everything();
  /// Ends a process, or the machine with it.
  void crash(const std::string& name, ending_kind how);
  /// Ends a node supervisor; its keeper starts another after `rest`.
  void crash_supervisor(const std::string& name, duration rest);
  void pause(const std::string& name);
  void resume(const std::string& name);
  /// The user's signal to a launcher.
  void interrupt(const std::string& name, int signal);
  /// A shell asks for the tree; `take` gets the answer, or an error if there is none.
  void ask_tree(std::function<void(result<messages::msg<messages::TreeReport>>)> take);
  /// A shell says how many nodes worlds may have.
  void scale(std::uint32_t nodes_min, std::uint32_t nodes_max);
  /// Kills one actor of the master or a node, as a bug in it would: "rendezvous", "agent", …
  void crash_actor(const std::string& host, const std::string& role);

  bool up(const std::string& name) const;
  /// The cluster below has another machine in the place of this node, or none.
  bool has_left(const std::string& name) const { return machines_ && machines_->has_left(name); }
  host_ptr find(const std::string& name) const;
  /// Nodes whose launcher has ended, with what it told its user.
  const std::map<std::string, actors::node_outcome>& outcomes() const { return outcomes_; }
  const std::optional<actors::recovery_core::verdict>& verdict() const { return verdict_; }
  /// The job is over and every process of it has ended.
  bool over() const;

  /// Lets time pass until `when`, or until something is broken, or `enough` says so.
  void run_until(instant when, const std::function<bool()>& enough = {});
  void run_for(duration d, const std::function<bool()>& enough = {});
  instant now() const { return world_.events.now(); }

 private:
  /// A machine, with the process on it that matters here.
  struct machine {
    host_ptr process;
    std::uint64_t boots = 0;
    bool dark = false;
    std::shared_ptr<sim_bulk_links> bulk; ///< of a node supervisor that runs
    // A launcher's keeper.
    std::shared_ptr<testing::fake_keeping> kept;
    std::uint64_t seed = 0;
    std::vector<int> wishes_to_end;
    bool successor_due = false;
  };
  /// Where the actors of each process find each other.
  struct trees;

  struct master_machine : machine {
    explicit master_machine(world& of) : disk(of) {}
    sim_disk disk;
    bool begins_anew = false; ///< its program does, with what a node has said
  };

  const host_ptr& boot(const std::string& name, machine& on);
  void tell_sizes(actors::master_options& o, const sim_disk& disk) const;
  void begin_anew(const host_ptr& h);
  void save_in_turn();
  void supervise(const std::string& name);
  void succeed(const std::string& name);
  void gone(const host_ptr& h, ending_kind how);
  void launcher_ended(const host_ptr& h, ending_kind how);
  void hear(const std::string& name, int signal);
  struct question;
  void ask_on(question& asked, result<ports::connection_ptr> link);
  void answer(question& asked, result<messages::any_msg> with);
  void ask(messages::any_msg what, duration within,
           std::function<void(result<messages::any_msg>)> take);
  void node_over(const std::string& name, std::uint64_t boot, const actors::node_outcome& o);
  void master_decided(const host_ptr& h, const actors::recovery_core::verdict& v);

  const cluster_options options_;
  world world_;
  sim::network network_;
  sim::trainers trainers_;
  sim::stores stores_;
  sim::checkpoints checkpoints_;
  sim::progress progress_;
  sim::channel channel_;
  sim::probes probes_;
  loads loads_;
  std::map<std::string, master_machine> masters_;
  std::map<std::string, machine> nodes_;
  std::optional<sim::machines> machines_;
  std::unique_ptr<trees> trees_;
  std::map<std::string, actors::node_outcome> outcomes_;
  std::optional<actors::recovery_core::verdict> verdict_;
  machine shell_;
  std::map<std::uint64_t, std::shared_ptr<question>> questions_; ///< by number
};

} // namespace troupe::sim
