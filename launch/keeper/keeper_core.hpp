#pragma once

#include "launch/keeper/refused_fork.hpp"
#include "launch/keeper/sweep_core.hpp"
#include "messages/keeper.capnp.h"
#include "messages/msg.hpp"
#include "runtime/base/back_off.hpp"
#include "runtime/base/restart_budget.hpp"
#include "runtime/base/time.hpp"
#include "runtime/ports/process.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace troupe::launch {

using store_order = messages::msg<messages::StoreWanted>;

/// What the launcher's own process decides. It keeps what must not die with the node supervisor:
/// the parenthood of the workers, the exit statuses that no supervisor has heard of, and the
/// requests of the user. It starts the supervisor, and again when that crashes.
///
/// A process is *known* from its ProcessStarted on. Of what is not known, everything below us is a
/// stray, unless a start is under way: then it may be the one that is being started.
class keeper_core {
 public:
  /// As whom the keeper writes messages.
  static constexpr auto said_by = "keeper";

  /// Start a supervisor; it is told of by messages that follow. By fork, so that options, addresses
  /// and job token are just there, and a restart costs a millisecond.
  struct start_supervisor {};
  /// Lost if no supervisor reads it; what a successor must know it is told again.
  struct send {
    messages::any_msg what;
  };
  /// Only the process that reaps knows whether a pid still names the same process: so all signals
  /// to workers pass through here.
  using signal = sweep_core::signal;
  /// Fork a store server that answers on the socket that came with the order. A process of its own:
  /// the workers' store outlives the supervisor, and with it all that ranks wrote.
  struct start_store {
    store_order order;
  };
  /// Tell the supervisor that ordered the store why there is none. So that the generation fails
  /// with this reason, and not with a timeout that says nothing.
  struct refuse_store {
    std::string why;
  };
  /// Put the file that came with the message into this slot.
  struct keep_file {
    std::size_t slot = 0;
  };
  /// Fork the process that ends what a killed keeper leaves behind. The kernel ends workers and
  /// store with their parent, but not what they have daemonized.
  struct start_orphan_reaper {};
  /// Answered by group_killed(), which says which processes they were.
  using kill_group = sweep_core::kill_group;
  /// Answered by children(), which says which processes are our children.
  using look = sweep_core::look;
  /// Give the terminal back to the shell, and go on.
  struct leave_foreground {};
  /// One line for the user.
  struct report_error {
    std::string what;
  };
  /// Everything is over; `error` is for the user.
  struct finish {
    int exit_code = 0;
    std::string error;
  };
  using effect =
      std::variant<start_supervisor, send, signal, start_store, refuse_store, keep_file,
                   start_orphan_reaper, kill_group, look, leave_foreground, report_error, finish>;
  using effects = std::vector<effect>;

  /// `inherited`: children that were there before us, and are left alone. `grouped`: processes and
  /// their descendants, and no others, are in a control group. `reaps_orphans`: there is something
  /// by which an orphan reaper finds what is left.
  keeper_core(std::set<int> ending_signals, std::set<pid_t> inherited, bool grouped,
              bool reaps_orphans)
      : ending_signals_(std::move(ending_signals)), inherited_(std::move(inherited)),
        grouped_(grouped), reaps_orphans_(reaps_orphans) {}

  effects begin(instant now);
  /// A successor begins with AllPresented; what it does not adopt is ended by its first sweep.
  effects received(instant now, const messages::any_msg& m);
  /// Bytes of the supervisor that are no message. They are left out, as is a message that no
  /// supervisor says, and the user is told once: a supervisor that is broken so far is not believed
  /// to be well, but it may be all that steers the workers.
  effects not_understood(const std::string& why);
  /// The keeper alone hears the user's signals, as supervisor and store have sessions of their own;
  /// so it can repeat a wish to end to each successor.
  effects user_signal(instant now, int number);
  /// The user pressed Ctrl-Z. The terminal stops nothing here: a keeper that stands still would
  /// hear of no end, and no failure would be handled.
  effects stop_asked_for();
  /// It is told first what there is, then of every wish to end that the user has had: a wish that
  /// the last supervisor did not live to fulfil is not lost.
  effects supervisor_started(instant now, pid_t pid);
  /// The system refused to fork it. A machine that is full for a moment costs the job nothing:
  /// workers, store and their ends are all in the keeper's care meanwhile.
  effects supervisor_not_started(instant now, const std::string& why);
  /// SIGSTOP, or a terminal. It judges nothing then, while its workers train on and other nodes may
  /// have replaced them; so it is continued after a while, and at once for a user who wants an end.
  /// It is not killed: the master may be in it, and what it does next is the same.
  effects supervisor_stopped(instant now);
  effects supervisor_continued();
  /// What the last supervisor had asked for is void: starts, sweeps and a store that was to come. A
  /// successor asks for its own. What was started, and how it ended, stays in the table.
  effects supervisor_ended(instant now, const ports::exit_status& how);
  effects store_started(instant now, const store_order& order, pid_t pid);
  /// Tried again no longer than the supervisor waits for an answer: a store that came later would
  /// belong to no generation.
  effects store_not_started(instant now, const store_order& order, const std::string& why);
  /// It may be killed like any process; the keeper then forks another, so that a killed launcher
  /// leaves nothing again.
  effects orphan_reaper_started(instant now, pid_t pid);
  effects orphan_reaper_not_started(instant now, const std::string& why);
  /// One of our children has ended and is reaped. An end is told to the supervisor that owns the
  /// process, and kept until a sweep: should that supervisor crash before it acts on the end, its
  /// successor hears of it after the adoption.
  effects child_ended(instant now, pid_t pid, const ports::exit_status& how);
  /// Our children at the time when they were listed, but for those that are awaited(); everything
  /// that was sent before that is received. `outdated`: one of them has been reaped since, so that
  /// what it left behind may not be listed. Nothing is decided while a start is under way, since
  /// the new process is on the list before it is known here. The message that closes the start asks
  /// for the next look.
  effects children(instant now, const std::vector<left_process>& listed, bool outdated);
  /// Only counted here: the ends of those that are our children come one by one, as ever.
  effects group_killed(instant now, const std::vector<pid_t>& members);
  effects tick(instant now);

  /// The earliest of what is waited for; every wait here has an end of its own.
  std::optional<instant> next_wakeup() const;
  pid_t supervisor() const { return supervisor_; }
  pid_t orphan_reaper() const { return orphan_reaper_; }
  /// Those whose end is ours to hear of, whenever it comes.
  std::vector<pid_t> awaited() const;
  /// Whether an unknown child is a stray for certain. While a start is under way a child that is
  /// not known may be the one that is being started, and its exit status must not be lost before
  /// its name is known.
  bool strays_may_be_reaped() const { return starts_open_ == 0; }
  bool finished() const { return finished_; }

 private:
  /// Stays after the end of the process until a sweep: an end that no supervisor has acted on is
  /// the one thing that only the keeper knows.
  struct record {
    pid_t pid = 0;
    std::uint64_t label = 0;
    bool is_store = false;
    bool owned = false;  ///< by the present supervisor
    bool killed = false; ///< by a signal that passed through us
    bool asked = false;  ///< its group was, by such a signal, to end
    std::optional<ports::exit_status> how;
  };

  /// Comes twice for a worker: when the successor takes stock, so that no sweep kills the process,
  /// and when the worker's actor is there, which hears of the end, if there was one, only now.
  void adopt(effects& out, std::uint64_t process);
  void pass_on(effects& out, std::uint64_t process, int number, bool group);
  void take_file(effects& out, std::size_t slot);
  /// A signal for a process that has ended goes nowhere: its pid may be another's by now.
  record* alive(std::uint64_t process);
  /// As long as one does, a supervisor that cannot be started is worth a wait, and a user's first
  /// wish to end waits for a successor that can end it in order.
  bool worker_lives() const;
  /// The one end of the job that the keeper decides: there is no supervisor that could say
  /// anything.
  void give_up(effects& out, std::string why);
  void continue_supervisor(effects& out);
  /// A signal number says less to the user than the supervisor's own last words, such as "no
  /// threads".
  std::string last_end_in_words(const ports::exit_status& how) const;
  /// A count and no names: starts overlap, and a look in between could find a process that is not
  /// told of yet.
  void start_closed(effects& out);
  /// The next store may be asked for the port of the one that was killed, which is in use until
  /// that one is gone.
  void start_store_if_free(effects& out);
  /// In the keeper's words and not by a wait of the supervisor's own: it is not the parent.
  void tell_end(effects& out, std::uint64_t process, const record& r) const;
  /// A sweep that is asked for during another one ends with it: its rounds find what was left
  /// since.
  void begin_sweep(effects& out, instant now, const messages::msg<messages::SweepWanted>& m);
  /// What of these only the keeper can do: to write messages and to forget.
  void take_over(effects& out, const sweep_core::effects& wanted);
  /// Whether it was signalled with the worker whose group it is in.
  bool was_asked(pid_t group) const;
  /// Here the keeper forgets the processes that have ended: a supervisor asks for a sweep when it
  /// has acted on their ends.
  void finish_sweep(effects& out, const sweep_core::finished& what);
  void tell_waiting(effects& out, const sweep_core::tell_waiting& what) const;
  /// The job is over. Shared-memory managers that still have to unlink are waited for: they would
  /// be killed with the keeper's own end.
  void finish_when_unlinked(effects& out, instant now);
  /// No process belongs to the new supervisor before it has said so: an unadopted one is a survivor
  /// of a generation that its predecessor had begun to end.
  void present_all(effects& out);

  /// Of the user's signals those that end the job; the others are only passed on.
  std::set<int> ending_signals_;
  /// What a shell had started before it became this launcher by exec is none of the job's.
  std::set<pid_t> inherited_;
  /// Without a group a sweep sees children alone, and follows a family of orphans down round by
  /// round.
  bool grouped_;
  bool reaps_orphans_;
  std::map<std::uint64_t, record> table_;
  /// 0 while there is none: messages for it would reach nothing then.
  pid_t supervisor_ = 0;
  /// A supervisor that worked for a while before it crashed is started again at once.
  instant supervisor_since_{};
  /// Told to each supervisor: from the second on it looks for what the one before it has left.
  int lives_ = 0;
  /// Begun by ProcessStarting, closed by ProcessStarted or ProcessNotStarted; a crash closes all.
  int starts_open_ = 0;
  std::optional<int> exit_code_; ///< said by the supervisor
  bool finished_ = false;
  /// The user's wishes to end; each supervisor hears them. Two are enough: the second means "no
  /// more patience", and a third could mean no more than that.
  std::vector<int> endings_asked_for_;
  /// This bounds a supervisor that crashes now and then; the pauses slow down one that always does.
  restart_budget restarts_{limits::supervisor_crashes_max, limits::supervisor_crashes_within};
  bool crashed_before_ = false; ///< and no supervisor has worked for a while since
  back_off restart_pause_{limits::supervisor_restart_first, limits::supervisor_restart_max};
  /// The next start after a crash. A fork that the system refuses has its own, below: the one is a
  /// bug here, the other a machine without room.
  std::optional<instant> restart_at_;
  refused_fork supervisor_fork_;
  std::optional<instant> continue_at_; ///< while the supervisor is stopped
  /// Why the present supervisor is about to end, in its own words, and what the user was told last.
  std::string last_words_, told_;
  bool misunderstood_ = false; ///< the user was told of it, for this supervisor
  /// Never a stray, though no supervisor knows it.
  pid_t orphan_reaper_ = 0;
  instant orphan_reaper_since_{};
  refused_fork orphan_reaper_fork_;
  sweep_core sweep_;
  /// So many answers are owed.
  int sweeps_wanted_ = 0;
  /// The supervisor is over, and only shared-memory managers are waited for, until then.
  std::optional<instant> finish_by_;
  /// Waits until the store that was killed has left its port, or until the system lets us fork.
  std::optional<store_order> store_wanted_;
  refused_fork store_fork_;
};

} // namespace troupe::launch
