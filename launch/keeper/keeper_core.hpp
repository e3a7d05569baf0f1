#pragma once

#include "launch/keeper/packet.hpp"
#include "launch/keeper/refused_fork.hpp"
#include "runtime/base/time.hpp"
#include "runtime/ports/process.hpp"

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace troupe::launch {

/// What the launcher's own process decides. It keeps what must not die with the node supervisor:
/// the parenthood of the workers, the exit statuses that no supervisor has heard of, and the
/// requests of the user. It starts the supervisor, and again when that crashes.
///
/// A process is *known* from its `started` on. Of what is not known, everything below us is a
/// stray, unless a start is under way: then it may be the one that is being started.
class keeper_core {
 public:
  /// Start a supervisor; it is told of by packets that follow.
  struct start_supervisor {};
  struct send {
    packet what;
  };
  /// To the process's whole group, or to the process alone.
  struct signal {
    pid_t pid = 0;
    int number = 0;
    bool group = true;
  };
  /// Fork a store server that answers on the socket that came with the order.
  struct start_store {
    packet order;
  };
  /// Tell the supervisor that ordered the store why there is none.
  struct refuse_store {
    std::string why;
  };
  /// Fork the process that ends what a killed keeper leaves behind.
  struct start_orphan_reaper {};
  /// Kill all processes in the control group, and tell group_killed() which they were.
  struct kill_group {};
  /// Tell children() which processes are our children.
  struct look {};
  /// Give the terminal back to the shell, and go on.
  struct leave_foreground {};
  /// One line for the user.
  struct complain {
    std::string what;
  };
  /// Everything is over; `complaint` is for the user.
  struct finish {
    int exit_code = 0;
    std::string complaint;
  };
  using effect =
      std::variant<start_supervisor, send, signal, start_store, refuse_store, start_orphan_reaper,
                   kill_group, look, leave_foreground, complain, finish>;
  using effects = std::vector<effect>;

  /// `inherited`: children that were there before us, and are left alone. `grouped`: processes and
  /// their descendants, and no others, are in a control group. `reaps_orphans`: there is something
  /// by which an orphan reaper finds what is left.
  keeper_core(std::set<int> ending_signals, std::set<pid_t> inherited, bool grouped,
              bool reaps_orphans)
      : ending_signals_(std::move(ending_signals)), inherited_(std::move(inherited)),
        grouped_(grouped), reaps_orphans_(reaps_orphans) {}

  effects begin(instant now);
  effects received(instant now, const packet& p);
  effects user_signal(instant now, int number);
  /// The user pressed Ctrl-Z.
  effects stop_asked_for();
  effects supervisor_started(instant now, pid_t pid);
  /// The system refused to fork it.
  effects supervisor_not_started(instant now, const std::string& why);
  effects supervisor_ended(instant now, const ports::exit_status& how);
  effects store_started(instant now, const packet& order, pid_t pid);
  effects store_not_started(instant now, const packet& order, const std::string& why);
  effects orphan_reaper_started(instant now, pid_t pid);
  effects orphan_reaper_not_started(instant now, const std::string& why);
  /// One of our children has ended and is reaped.
  effects child_ended(instant now, pid_t pid, const ports::exit_status& how);
  /// Our children at the time when they were listed; everything that was sent before that is
  /// received. `outdated`: one of them has been reaped since, so that what it left behind may not
  /// be listed.
  effects children(instant now, const std::set<pid_t>& pids, bool outdated);
  effects group_killed(instant now, const std::vector<pid_t>& members);
  effects tick(instant now);

  std::optional<instant> next_wakeup() const;
  pid_t supervisor() const { return supervisor_; }
  pid_t orphan_reaper() const { return orphan_reaper_; }
  /// Those whose end is ours to hear of, whenever it comes.
  std::vector<pid_t> awaited() const;
  /// Whether an unknown child is a stray for certain.
  bool strays_may_be_reaped() const { return starts_open_ == 0; }
  bool finished() const { return finished_; }

 private:
  struct record {
    pid_t pid = 0;
    std::uint64_t label = 0;
    bool is_store = false;
    bool owned = false;  ///< by the present supervisor
    bool killed = false; ///< by a signal that passed through us
    std::optional<ports::exit_status> how;
  };

  void add(const packet& p, pid_t pid, bool is_store);
  record* alive(std::uint64_t process);
  bool worker_lives() const;
  void give_up(effects& out, std::string why);
  std::string last_end_in_words(const ports::exit_status& how) const;
  void start_closed(effects& out);
  void start_store_if_free(effects& out);
  void tell_end(effects& out, std::uint64_t process, const record& r) const;
  void sweep_if_idle(effects& out, instant now);
  void finish_sweep(effects& out);
  void present_all(effects& out);

  std::set<int> ending_signals_;
  std::set<pid_t> inherited_;
  bool grouped_;
  bool reaps_orphans_;
  std::map<std::uint64_t, record> table_;
  pid_t supervisor_ = 0;
  instant supervisor_since_{};
  int lives_ = 0;
  int starts_open_ = 0;
  std::optional<int> exit_code_; ///< said by the supervisor
  bool finished_ = false;
  /// The user's wishes to end; each supervisor hears them.
  std::vector<int> endings_asked_for_;
  std::deque<instant> crashes_;
  std::size_t hasty_ = 0; ///< crashes in a row of supervisors that had hardly begun
  std::optional<instant> restart_at_;
  refused_fork supervisor_fork_;
  /// Why the present supervisor is about to end, in its own words, and what the user was told last.
  std::string last_words_, told_;
  pid_t orphan_reaper_ = 0;
  instant orphan_reaper_since_{};
  refused_fork orphan_reaper_fork_;
  std::optional<instant> sweep_until_;
  bool group_killed_ = false;
  std::set<pid_t> swept_;
  int sweeps_wanted_ = 0;
  std::set<pid_t> ending_; ///< strays that were killed
  /// Waits until the store that was killed has left its port, or until the system lets us fork.
  std::optional<packet> store_wanted_;
  refused_fork store_fork_;
};

} // namespace troupe::launch
