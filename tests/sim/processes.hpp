#pragma once

#include "actors/node_supervisor/training_program.hpp"
#include "runtime/ports/process.hpp"
#include "tests/sim/host.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe::sim {

/// How the trainers of a job behave; chances are per process.
struct trainer_options {
  /// From exec to taking part.
  duration startup_min = 5ms;
  duration startup_max = 60ms;
  /// What all ranks together must do before they exit with 0; what was done up to a checkpoint
  /// stays done.
  duration training = 20s;
  duration checkpoint_every = 1s;
  /// From the loss of a peer to noticing it and exiting with 1.
  duration notices_min = 5ms;
  duration notices_max = 40ms;
  double hangs = 0; ///< never notices that
  double fails_to_start = 0;
  double dies_early = 0; ///< exits with 7 within startup
  double ignores_sigterm = 0;
  double exits_on_sigterm = 0; ///< with 143, after some time
  double leaves_stray = 0;
  double hard_to_kill = 0; ///< held by the kernel for a while after SIGKILL
  /// Has a handler for the signal that asks for an end, once it takes part: all ranks save then,
  /// and exit with 0, after this time at most.
  double ends_when_asked = 0;
  duration saves_within = 500ms;
  /// All ranks of a generation have found each other.
  std::function<void(generation)> when_together = [](generation) {};
  /// All has been done, and all ranks are there still.
  std::function<void(generation)> before_end = [](generation) {};
};

/// All training processes of a simulation, on all machines. Training makes progress while every
/// rank of a generation runs; a rank that ends takes its peers with it, as a collective library
/// does.
class trainers {
 public:
  trainers(world& of, trainer_options options);

  /// The processes of one launcher; they end with it.
  std::shared_ptr<ports::process_host> host_of(const host_ptr& launcher);
  /// What a launcher runs at one place; read back by `host_of`'s start.
  static ports::process_spec spec_of(const actors::assignment& place);

  /// A process outside any job, for tests of the host: what it does is written down.
  struct script {
    std::optional<int> exits;
    bool ignores_sigterm = false;
    bool leaves_stray = false;
    bool missing = false;
  };
  static ports::process_spec scripted(const script& s);

  trainer_options& options() { return options_; }

  /// Everything so far, in order of starting.
  const std::vector<process_record>& all() const { return all_; }
  std::size_t alive_on(const std::string& node) const;
  std::size_t alive() const;
  /// The living ranks of the newest generation that has any.
  std::vector<std::uint64_t> living_ranks() const;
  std::optional<std::uint64_t> find(global_rank rank) const;
  /// Those whose ranks have all found each other and run; under two masters there may be two.
  std::vector<generation> together() const;
  /// Their processes by rank; none unless all run.
  std::vector<std::uint64_t> ranks_of(generation which) const;

  /// It ends by itself, and its log with these words.
  void exit(std::uint64_t process, ports::exit_status how, const std::string& last_words = {});
  /// Of the newest process that was started for this place.
  std::string last_words(const std::string& node, const actors::assignment& place) const;

  /// The launcher has ended. Its processes get SIGKILL; without power, strays go as well. After a
  /// crash of its node supervisor they run on.
  void launcher_ended(const host_ptr& launcher, ending_kind how);
  /// A node supervisor goes on where one crashed: what is left of that one is in its care.
  void succeeded(const host_ptr& by);

  /// Whether every rank of one generation runs at this moment.
  bool training() const;
  duration progress() const;

 private:
  friend class sim_process_host;

  struct running {
    std::weak_ptr<host> launcher;
    ports::process_host::ended on_end; ///< none: a crashed supervisor's, and not adopted yet
    std::uint32_t world_size = 1;
    bool joined = false;
    bool ending = false; ///< its end is decided and on its way
    bool ignores_sigterm = false;
    bool exits_on_sigterm = false;
    bool leaves_stray = false;
    bool hard_to_kill = false;
    bool ends_when_asked = false;
  };
  /// One generation's ranks that have found each other.
  struct group {
    std::set<std::uint64_t> joined;
    std::uint32_t world_size = 0;
    std::optional<instant> together_since;
    bool broken = false;
    bool asked = false; ///< to save and end
  };

  result<ports::started> start(const host_ptr& launcher, const ports::process_spec& spec,
                               ports::process_host::ended on_end);
  void signal(std::uint64_t process, int number);
  /// One process alone, which may have a handler: then its world ends.
  void signal_alone(std::uint64_t process, int number);
  bool takes_signal(const std::string& node, std::int32_t pid) const;
  void save_and_end(generation which);
  process_record& enroll(const host_ptr& launcher);
  ports::started start_scripted(const host_ptr& launcher, const script& s,
                                ports::process_host::ended on_end);
  struct sweeping {
    ports::sweep_order order;
    std::function<void(const ports::left_behind&)> waits;
    std::function<void(const ports::swept&)> done;
  };
  void sweep(const host_ptr& launcher, const sweeping& what);
  void sweep_strays(const host_ptr& launcher, const sweeping& what);
  /// Those that a keeper knows: all that have not ended before the last sweep.
  std::vector<ports::survivor> survivors(const host_ptr& launcher) const;
  void adopt(const host_ptr& launcher, std::uint64_t process, ports::process_host::ended on_end);
  std::vector<std::uint64_t> unwanted(const host_ptr& launcher) const;
  void when_gone(const host_ptr& launcher, const std::vector<std::uint64_t>& which,
                 instant at_the_latest, std::function<void()> then);
  void join(std::uint64_t process);
  void become_together(generation which, group& g);
  void finish_together(generation which);
  void miss_a_peer(std::uint64_t process);
  void break_up(generation which, std::uint64_t first_lost);
  void end_in(duration delay, std::uint64_t process, ports::exit_status how);
  void leave_stray(const process_record& parent);
  process_record& record(std::uint64_t process) { return all_.at(process - 1); }

  world& world_;
  trainer_options options_;
  std::vector<process_record> all_; ///< process n at n-1
  std::map<std::uint64_t, running> living_;
  std::map<std::string, std::set<std::uint64_t>> kept_; ///< by node: what its keeper knows
  std::set<std::uint64_t> strays_;
  std::map<generation, group> groups_;
  duration done_{};
  std::int32_t next_pid_ = 1'000;
  std::uint16_t next_port_ = 40'000;
};

} // namespace troupe::sim
