#pragma once

#include "actors/limits.hpp"
#include "actors/node_supervisor/training/agent/seat.hpp"
#include "actors/node_supervisor/training_program.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/phase_of.hpp"
#include "runtime/base/rare.hpp"
#include "runtime/base/time.hpp"
#include "runtime/ports/process.hpp"
#include "runtime/ports/store.hpp"

#include <csignal>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors {

struct agent_options {
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
  /// What is in memory of a generation that failed or is stopped is written out each time, and not
  /// only when the job ends by that.
  bool save_at_breakpoint = false;
  /// By which one worker is told that all of them are to save and end.
  int end_signal = SIGUSR1;
  /// When this node is to leave: how long its workers are left alone after they were told so.
  /// Nothing: they are not told, and have `stop_within`.
  std::optional<duration> leave_within;
};

/// How this node's part in the job ended.
struct node_outcome {
  bool success = false;
  std::string reason;
  /// The master's verdict, if there was one.
  std::optional<messages::msg<messages::Conclude>> verdict;
  /// What failed here, in full: also what the master did not wait for.
  std::optional<messages::msg<messages::Failed>> failures;
  /// The user's, if that is what ended it; else 0.
  int signal = 0;
};

/// This node's part in the job: follows the master's directives, has the supervisors start and stop
/// the workers of one generation at a time, and reports what becomes of them.
///
///            Prepare          Start            all exited with 0      saved
///      idle ────────▶ ready ────────▶ running ─────────────────▶ saving ─────▶ finished
///       ▲                             │     │
///       │                        Stop │     │ one failed
///       │     swept                   ▼     ▼
///       └───────────── sweeping ◀── draining ◀── failed
///
/// The one promise that everything else rests on: what this node says next (Prepared, Stopped,
/// Goodbye) it says only when every process of what was before is gone, with whatever those
/// processes have left behind. Two worlds with the same ranks that train at the same time would
/// overwrite each other's checkpoints.
///
/// The agent does not stop workers one by one. After a failure the generation's supervisor stops
/// the siblings, as they share one fate; a directive is one order to the whole generation.
class agent_core {
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
  /// What is not here is a bug, at which the supervisor ends the workers as well: that costs a
  /// restart; two worlds at once would cost the checkpoints. `draining` leads to `sweeping` alone:
  /// what workers leave behind is killed before this node says anything else. `idle` leads to
  /// `running` at an adoption. Nothing follows `over`, since Goodbye is said once.
  static constexpr phase_table<phase> phases{
      "an agent",
      {
          {phase::idle,
           "idle",
           {phase::idle, phase::sweeping, phase::ready, phase::running, phase::saving,
            phase::over}},
          {phase::draining, "draining", {phase::draining, phase::sweeping}},
          {phase::sweeping, "sweeping", {phase::idle, phase::saving, phase::over}},
          {phase::ready, "ready", {phase::idle, phase::running, phase::saving, phase::over}},
          {phase::running, "running", {phase::draining, phase::failed, phase::saving}},
          {phase::failed,
           "failed",
           {phase::draining, phase::sweeping, phase::idle, phase::saving, phase::over}},
          {phase::saving,
           "saving",
           {phase::sweeping, phase::idle, phase::saving, phase::finished, phase::over}},
          {phase::finished, "finished", {phase::sweeping, phase::idle, phase::saving, phase::over}},
          {phase::over, "over", {}},
      }};

  /// Have the generation started, with a worker at each of these slots. Answered by what the
  /// workers report, or by generation_refused; in the end, and once, by generation_ended.
  struct start_generation {
    generation which;
    std::vector<worker_slot> slots;
  };
  /// Have all its workers stopped: this signal to each process's group, SIGKILL for those that are
  /// still there after `within`. Again: the new order reaches those that still live.
  struct stop_generation {
    generation which;
    std::string reason; ///< For people.
    int signal;
    duration within;
  };
  /// Signal the process's group; it goes on, unless it takes that differently.
  struct signal_worker {
    local_rank local;
    int signal;
    bool alone = false; ///< its process, and not what that has started
  };
  /// Find out whether the process has a handler for the signal; answered by handler_looked_for.
  struct look_for_handler {
    generation which;
    local_rank local;
    std::int32_t pid;
    int signal;
  };
  /// Have ended what the workers have left behind; answered by swept(), perhaps by left_behind()
  /// before that.
  struct sweep {
    ports::sweep_order order;
  };
  /// Open the workers' store of this generation; answered by store_placed.
  struct open_store {
    generation which;
    ports::store_reach reach = ports::store_reach::network;
    std::string address; ///< as what the workers will dial this node
  };
  /// The predecessor's goes on as this agent's.
  struct adopt_store {
    std::uint16_t port = 0;
  };
  /// The processes that were to use it are gone.
  struct close_store {};
  /// Find a free port on this node's address for a worker that hosts the store; answered as
  /// open_store.
  struct pick_port {
    generation which;
    std::string address;
  };
  /// Ask, after a while, to be told when what the processes wanted saved is finalized; answered by
  /// drained(), with trouble if it is not finalized within that time.
  struct drain {
    generation which;
    duration after{};
    duration within = limits::drain_within;
  };
  /// The newest snapshot of each process is wanted as well, unless it is on the disk.
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
  /// For the hang watchdog: which processes there are from now on.
  struct watch {
    messages::msg<messages::Watched> what;
  };
  struct node_over {
    node_outcome outcome;
  };
  struct note {
    log::event event;
  };
  using effect = std::variant<start_generation, stop_generation, signal_worker, look_for_handler,
                              sweep, open_store, adopt_store, close_store, pick_port, drain,
                              save_newest, report, remember, watch, node_over, note>;
  using effects = std::vector<effect>;

  /// `leftovers`: an earlier incarnation may have left processes behind.
  agent_core(agent_options options, messages::author author, bool leftovers = false);

  /// First of all, if at all: goes on where a supervisor that crashed had been. `left` are the
  /// processes it had started for that generation; those it did not get to are started now.
  effects adopt(instant now, const messages::msg<messages::Underway>& m,
                const std::vector<ports::survivor>& left);

  // From the master.
  effects prepare(instant now, const messages::msg<messages::Prepare>& m);
  effects start(instant now, const messages::msg<messages::Start>& m);
  effects stop(instant now, const messages::msg<messages::Stop>& m);
  /// The workers are to save and end by themselves, if they know how. The generation runs on.
  effects end_wanted(instant now, const messages::msg<messages::EndWanted>& m);
  /// This node takes no part for now.
  effects leave_wanted(instant now, const messages::msg<messages::Leave>& m);
  effects stand_by(instant now, const messages::msg<messages::StandBy>& m);
  effects conclude(instant now, const messages::msg<messages::Conclude>& m);
  /// A rank of this node keeps the others waiting: its process is killed, and by that the
  /// generation fails.
  effects end_worker(instant now, const messages::msg<messages::EndWorker>& m);

  // From the workers; the envelope names the generation they were started for.
  effects worker_started(instant now, const messages::msg<messages::WorkerStarted>& m);
  effects worker_ended(instant now, const messages::msg<messages::WorkerEnded>& m);

  /// A worker has asked for its state to be written.
  effects snapshot_wanted(instant now);
  effects handler_looked_for(instant now, generation which, local_rank local, bool there);

  // From the supervisors.
  /// It could not be started at all.
  effects generation_refused(instant now, generation which, const std::string& why,
                             std::int64_t unix_time_ms);
  /// No worker of it is left. Said after the last worker's own words, unless a supervisor crashed.
  effects generation_ended(instant now, generation which, std::int64_t unix_time_ms);

  /// The sweep takes a while.
  effects left_behind(instant now, const ports::left_behind& what);
  effects swept(instant now, const ports::swept& what);
  /// 0: there is none. Without meaning where awaits_store() says no: what was opened is dropped.
  effects store_placed(instant now, generation which, std::uint16_t port);
  bool awaits_store(generation which) const;

  /// What `which` wanted saved is; or that is unknown.
  effects drained(instant now, generation which, const std::optional<error>& trouble);

  // Time.
  effects tick(instant now);
  std::optional<instant> next_wakeup() const;

  // From the launcher.
  /// The user's signal: passed on to every worker group, then this node leaves the job. A second
  /// one does not wait.
  /// `ends_job`: for the others, too.
  effects interrupted(instant now, int signal, bool ends_job);
  /// A signal of the user's that is for the workers only; it means nothing while none run.
  effects passed_on(instant now, int signal);
  /// The job cannot go on for this node (refused, no master).
  effects abandon(instant now, const std::string& reason);

  /// What a hello says about this node.
  messages::msg<messages::NodeState> state(instant now);
  /// What the hang watchdog is to watch.
  messages::msg<messages::Watched> watched();

  phase current_phase() const { return phase_; }
  generation current() const { return current_; }
  std::string in_words() const;

 private:
  enum class worker_phase { starting, alive, ended };
  struct worker {
    worker_phase phase = worker_phase::starting;
    std::int32_t pid = 0;
    std::set<int> requests; ///< starting: signals to be passed on once it runs
    std::string hung;       ///< its end was ordered for this reason; empty: it was not
  };
  struct failure {
    messages::msg<messages::WorkerEnded> end;
    instant shown_at{};
    bool stopped = false; ///< It had shown, but what ended the process was our signal.
    std::string hung;     ///< It was ended for this reason; empty: it ended by itself.
  };
  /// How far an EndWanted, or this node's own wish to leave, has come with the workers of started_.
  enum class asking {
    none,
    looking, ///< whether one of them takes the signal
    asked,   ///< it was sent
    begun,   ///< and something has come of it, which the master knows
  };
  /// This node leaves, and its workers may save first.
  struct parting {
    instant until;
    int signal;        ///< the user's; that is when they get it
    bool clean = true; ///< those that have ended did so with 0
  };
  /// After a signal: when the user is told next what is waited for.
  struct patience {
    instant until; ///< then it is over in any case
    instant next;
    duration every;
  };
  /// How a generation that a message is about relates to the one this node is at: the fence. The
  /// one place where a directive's generation is compared.
  enum class fence { older, current, newer };
  fence compare(generation which) const;
  /// The fence of what the workers say: their generation, and a slot that is there.
  worker* find(generation which, local_rank local);

  // Transitions.
  void become_draining(effects& out, instant now, const std::string& reason, int signal,
                       duration within);
  void become_swept(effects& out, instant now);
  void become_preparing(effects& out);
  void become_ready(effects& out, std::uint16_t port);
  void become_running(effects& out, const messages::msg<messages::Start>& m);
  void become_failed(effects& out, instant now);
  void become_saving(effects& out, duration within);
  void become_gone(effects& out, instant now);
  void become_finished(effects& out, instant now);
  void become_over(effects& out, instant now);

  /// What every event ends with: throws unless the state's parts fit each other.
  effects checked(effects out) const;
  void take_slots(effects& out, instant now, std::vector<worker_slot> slots,
                  const std::vector<ports::survivor>& left);
  std::vector<worker_slot> slots_of(const messages::msg<messages::Start>& m) const;
  void forget_underway(effects& out);
  bool holds_processes_of(generation which) const;
  void stop_workers(effects& out, const std::string& reason, int signal, duration within) const;
  void begin_sweep(effects& out, instant now);
  ports::sweep_order time_for_the_left(instant now) const;
  void all_started(effects& out);
  void say_watched(effects& out);
  void processes_gone(effects& out, instant now);
  void take_failure(effects& out, instant now, failure f);
  void tell_failure(effects& out, instant now, const failure& f);
  void leave(effects& out, instant now, node_outcome outcome, int signal, duration within);
  messages::msg<messages::WorkerEnded> lost_worker(local_rank local, const std::string& why,
                                                   std::int32_t exit_code, bool before_start,
                                                   std::int64_t unix_time_ms);
  messages::msg<messages::Failed> failures(instant now);
  void write_failures(capnp::List<messages::WorkerFailure>::Builder out, instant now) const;
  bool by_our_hand(const messages::msg<messages::WorkerEnded>& m, bool told_before) const;
  void say_prepared(effects& out);
  void say_stopped(effects& out, instant now, generation which);
  void say_stopped_generations(effects& out, instant now);
  messages::msg<messages::Underway> underway(const messages::msg<messages::Start>& m);
  assignment place_of(local_rank local, const messages::msg<messages::Start>& m) const;
  bool any_worker(worker_phase in) const;
  // Workers are asked to end (agent_core_asking.cpp).
  bool ask_workers(effects& out);
  void say_begun(effects& out);
  void say_end_answer(effects& out, bool begun);
  void say_finished(effects& out, bool asked);
  bool may_part(int signal) const;
  void part(effects& out, instant now, int signal);
  /// What this node is waited for has changed: its workers are ended now.
  void cut_parting_short(effects& out, const std::string& reason);
  void await_patiently(instant now, duration within);
  void await_last_saves(instant now);
  std::string what_is_waited_for() const;
  std::string workers_left() const;

  agent_options options_;
  messages::author author_;
  phase_of<phases> phase_{phase::idle};
  generation current_{}; ///< the newest generation this node was asked to prepare, or to stop
  std::optional<instant> failed_at_;  ///< the failure that led to current_, if one did
  std::optional<own_seat> next_seat_; ///< in current_, until a Stop; none: nothing is to be started
  generation started_{};              ///< whose processes workers_ are
  own_seat seat_;                     ///< in started_: failures are told by its ranks
  bool up_ = false;                   ///< its supervisor lives, as far as this agent knows
  std::vector<worker> workers_;
  std::vector<failure> failures_; ///< those that failed by themselves first, then by age
  /// Set before the first process exists, since a start that fails half-way may leave something
  /// too.
  bool dirty_ = false; ///< processes were started since the last sweep
  bool sweep_open_ = false;
  bool swept_beside_workers_ = false; ///< they ran when it was begun
  bool remembered_ = false;           ///< a successor would adopt
  bool watched_ = false;              ///< the hang watchdog was told of processes
  bool says_stopped_ = false;         ///< once nothing of started_ is left
  generation stop_open_{};            ///< the newest Stop that was not answered yet; 0: none
  std::uint16_t store_port_ = 0;
  bool store_open_ = false;
  unsigned drain_tries_ = 0;
  bool user_waits_ = false;   ///< for the end, since a signal
  bool saves_last_ = false;   ///< before it is over
  bool saves_newest_ = false; ///< then also what is in memory alone: no worker goes on from it
  /// Nothing clears it: there is no way back into the job.
  std::optional<node_outcome> outcome_; ///< set once this node is on its way out
  std::optional<instant> draining_since_;
  /// Since then: how long the workers have, and what they leave behind.
  instant time_until_{};
  std::optional<instant> ended_well_at_; ///< all workers of started_ have, by themselves
  std::optional<patience> patience_;
  asking asking_ = asking::none;
  std::optional<parting> parting_;
  bool parted_well_ = false; ///< all of its workers have saved and ended by themselves
};

} // namespace troupe::actors
