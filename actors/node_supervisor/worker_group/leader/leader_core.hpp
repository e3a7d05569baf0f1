#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/time.hpp"
#include "runtime/ports/process.hpp"
#include "runtime/ports/store.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors {

struct leader_options {
  node_name node;
  std::uint32_t slots = 1;
  /// From the first signal to SIGKILL (--shutdown-timeout).
  duration stop_within = limits::stop_workers_within;
  /// What this machine calls itself, for people.
  std::string host;
  /// Whether this node hosts the workers' store when it is group rank 0; else rank 0's worker does.
  bool hosts_store = true;
  /// Where the store must be; 0: anywhere.
  std::uint16_t store_port = 0;
  /// What is in memory of a generation that failed or is stopped is written out as well.
  bool save_at_breakpoint = false;
};

/// One local rank's place in a generation: all that its environment is made of.
struct assignment {
  generation which;
  std::uint32_t restart_count = 0;
  local_rank local = 0;
  global_rank rank = 0;
  std::uint32_t local_world_size = 0;
  std::uint32_t world_size = 0;
  std::uint32_t group_rank = 0;
  std::uint32_t group_world_size = 0;
  std::string store_address;
  std::uint16_t store_port = 0;
  bool store_hosted = false; ///< by a node supervisor; else by rank 0's worker
};

/// Why a worker failed, from what it left behind.
struct obituary {
  std::string message;           ///< one line
  std::string traceback;         ///< many; empty if there is nothing beyond `message`
  std::string error_file;        ///< empty if it wrote none
  std::int64_t unix_time_ms = 0; ///< 0: when it ended
  /// Since it showed first: since its error file was written, or since it ended.
  duration ago{};
  /// The kernel has killed processes for lack of memory since it was started.
  bool out_of_memory = false;
  /// The last lines of its stderr, if that went to a file; no longer than limits::log_tail_max.
  std::string log_tail;
};

/// How this node's part in the job ended.
struct node_outcome {
  bool success = false;
  std::string reason;
  /// The master's verdict, if there was one.
  std::optional<messages::msg<messages::Conclude>> verdict;
  /// What failed here, in full: also what the master did not wait for.
  std::optional<messages::msg<messages::Failed>> failures;
};

/// Steers the local ranks of one generation at a time. Follows the master's directives, reports
/// what happens to the processes, and makes sure that a generation's processes (with whatever they
/// left behind) are gone before it says Prepared for the next.
class leader_core {
 public:
  enum class phase {
    idle,     ///< No process, no task.
    draining, ///< Processes of a generation are being ended; then this node is ready for current_,
              ///< idle, or over.
    sweeping, ///< They are gone; what they left behind is being killed.
    ready,    ///< Prepared for current_; rank 0's node also has a store, or a port for one.
    running,  ///< All processes of current_ were started.
    failed,   ///< A process of current_ failed; the others are being ended or gone.
    saving,   ///< All processes have ended; what they wanted saved is on its way.
    finished, ///< It is saved, or given up, and all processes of current_ had ended with 0.
    over,     ///< This node's part is over.
  };

  struct start_worker {
    assignment place;
  };
  /// Of a supervisor that crashed; from here on like one that was started.
  struct adopt_worker {
    assignment place;
    ports::survivor process;
  };
  /// Signal the process's group, and SIGKILL it when it is still there after `within`.
  struct end_worker {
    local_rank local;
    int signal;
    duration within;
  };
  /// Signal the process's group; it goes on, unless it takes that differently.
  struct signal_worker {
    local_rank local;
    int signal;
  };
  struct sweep {};
  /// Open the workers' store of current_; answered by store_placed before anything else happens.
  struct open_store {
    ports::store_reach reach = ports::store_reach::network;
  };
  /// The predecessor's goes on as this leader's.
  struct adopt_store {
    std::uint16_t port = 0;
  };
  /// The processes that were to use it are gone.
  struct close_store {};
  /// Find a free port on this node's address for a worker that hosts the store; answered as
  /// open_store.
  struct pick_port {};
  /// Ask, after a while, to be told when what the processes wanted saved is settled; answered by
  /// drained(), with trouble if it is not settled within that time.
  struct drain {
    generation which;
    duration after{};
    duration within = limits::drain_within;
  };
  /// The newest image of each process is wanted as well.
  struct save_newest {};
  /// For the master; lost if there is no link, and then told by state() in the next hello.
  struct report {
    messages::any_msg message;
  };
  /// What a successor needs to adopt the workers, before any of them is started; generation 0
  /// before they are ended.
  struct remember {
    messages::msg<messages::Underway> what;
  };
  struct node_over {
    node_outcome outcome;
  };
  struct note {
    log::event event;
  };
  using effect = std::variant<start_worker, adopt_worker, end_worker, signal_worker, sweep,
                              open_store, adopt_store, close_store, pick_port, drain, save_newest,
                              report, remember, node_over, note>;
  using effects = std::vector<effect>;

  /// `leftovers`: an earlier incarnation may have left processes behind.
  leader_core(leader_options options, messages::author author, bool leftovers = false);

  /// First of all, if at all: goes on where a supervisor that crashed had been. `left` are the
  /// processes it had started for that generation; those it did not get to are started now.
  effects adopt(instant now, const messages::msg<messages::Underway>& m,
                const std::vector<ports::survivor>& left);

  // From the master.
  effects prepare(instant now, const messages::msg<messages::Prepare>& m);
  effects start(instant now, const messages::msg<messages::Start>& m);
  effects stop(instant now, const messages::msg<messages::Stop>& m);
  /// This node takes no part for now.
  effects stand_by(instant now, const messages::msg<messages::StandBy>& m);
  effects conclude(instant now, const messages::msg<messages::Conclude>& m);

  // From the processes; `which` is the generation they were started for.
  effects worker_started(instant now, generation which, local_rank local, std::int32_t pid);
  effects worker_not_started(instant now, generation which, local_rank local,
                             const std::string& why, std::int64_t unix_time_ms);
  effects worker_ended(instant now, generation which, local_rank local,
                       const ports::exit_status& status, const obituary& why);
  effects swept(instant now, std::size_t killed);
  /// 0: there is none.
  effects store_placed(instant now, std::uint16_t port);

  /// What `which` wanted saved is; or nobody can say so now.
  effects drained(instant now, generation which, const std::optional<error>& trouble);

  // From whoever runs this node.
  /// The user's signal: passed on to every worker group, then this node leaves the job. A second
  /// one does not wait.
  effects interrupted(instant now, int signal);
  /// A signal of the user's that is for the workers only; nobody hears it while none run.
  effects passed_on(instant now, int signal);
  /// The job cannot go on for this node (refused, no master).
  effects abandon(instant now, const std::string& reason);

  /// What a hello says about this node.
  messages::msg<messages::NodeState> state(instant now);

  phase current_phase() const { return phase_; }
  generation current() const { return current_; }
  std::string in_words() const;

 private:
  enum class worker_phase { starting, alive, ended };
  struct worker {
    worker_phase phase = worker_phase::starting;
    std::int32_t pid = 0;
    std::optional<instant> asked_at; ///< when it was asked to end
    bool succeeded = false;
    std::set<int> requests; ///< starting: signals to be passed on once it runs
  };
  struct failure {
    local_rank local = 0;
    std::int32_t pid = 0;
    std::int32_t exit_code = 0;
    obituary why;
    instant shown_at{};
    bool before_start = false;
  };

  // Transitions; nothing else assigns phase_.
  void become_draining(effects& out, instant now, int signal, duration within);
  void become_swept(effects& out, instant now);
  void become_preparing(effects& out);
  void become_ready(effects& out, std::uint16_t port);
  void become_running(effects& out, const messages::msg<messages::Start>& m);
  void become_failed(effects& out, instant now);
  void become_saving(effects& out, duration within);
  void become_gone(effects& out, instant now);
  void become_finished(effects& out, instant now);
  void become_over(effects& out, instant now);

  void start_missing(effects& out, const messages::msg<messages::Start>& start);
  void take_place(const messages::msg<messages::Prepare>& world);
  void forget_underway(effects& out);
  bool any_alive() const;
  void end_all(effects& out, instant now, int signal, duration within);
  void begin_sweep(effects& out);
  void worker_is_gone(effects& out, instant now);
  void take_failure(effects& out, instant now, failure f);
  void leave(effects& out, instant now, node_outcome outcome, int signal, duration within);
  messages::msg<messages::Failed> failures(instant now);
  void write_failures(capnp::List<messages::WorkerFailure>::Builder out, instant now) const;
  bool by_our_hand(const worker& w, const ports::exit_status& status, const obituary& why,
                   instant now) const;
  void say_prepared(effects& out);
  messages::msg<messages::Underway> underway(const messages::msg<messages::Start>& m);
  assignment place_of(local_rank local, const messages::msg<messages::Start>& m) const;
  const messages::msg<messages::Prepare>& world() const { return *world_; }

  leader_options options_;
  messages::author author_;
  phase phase_ = phase::idle;
  generation current_{}; ///< the newest generation this node was asked to prepare
  std::optional<messages::msg<messages::Prepare>> world_;
  std::uint32_t group_rank_ = 0;
  global_rank first_rank_ = 0;
  generation started_{}; ///< whose processes workers_ are
  std::vector<worker> workers_;
  std::vector<failure> failures_;
  bool dirty_ = false; ///< processes were started since the last sweep
  bool sweep_open_ = false;
  bool remembered_ = false; ///< a successor would adopt
  std::uint16_t store_port_ = 0;
  bool store_open_ = false;
  unsigned drain_tries_ = 0;
  bool saves_last_ = false;             ///< before it is over
  std::optional<node_outcome> outcome_; ///< set once this node is on its way out
  std::optional<instant> draining_since_;
};

} // namespace troupe::actors
