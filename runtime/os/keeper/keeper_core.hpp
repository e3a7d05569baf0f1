#pragma once

#include "runtime/base/limits.hpp"
#include "runtime/base/time.hpp"
#include "runtime/os/keeper/packet.hpp"
#include "runtime/ports/process.hpp"

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace troupe::os {

/// What the launcher's own process decides. It keeps what must not die with the node supervisor:
/// whose child a worker is, how those ended whose end nobody has heard of, and what the user asked
/// for. It starts the supervisor, and again when that crashes.
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
  /// Kill all who are in the control group of the processes, and tell group_killed() who they were.
  struct kill_group {};
  /// Tell children() who our children are.
  struct look {};
  /// Everything is over; `complaint` is for the user.
  struct finish {
    int exit_code = 0;
    std::string complaint;
  };
  using effect =
      std::variant<start_supervisor, send, signal, start_store, kill_group, look, finish>;
  using effects = std::vector<effect>;

  /// `inherited`: children that were there before us, and are left alone. `grouped`: processes and
  /// their descendants, and nobody else, are in a control group.
  keeper_core(std::set<int> ending_signals, std::set<pid_t> inherited, bool grouped)
      : ending_signals_(std::move(ending_signals)), inherited_(std::move(inherited)),
        grouped_(grouped) {}

  effects begin(instant now);
  effects received(instant now, const packet& p);
  effects user_signal(instant now, int number);
  effects supervisor_started(instant now, pid_t pid);
  effects supervisor_ended(instant now, const ports::exit_status& how);
  effects store_started(instant now, const packet& order, pid_t pid);
  /// One of our children has ended and is reaped.
  effects child_ended(instant now, pid_t pid, const ports::exit_status& how);
  /// Who our children were when they were listed; everything that was sent before that is received.
  /// `outdated`: one of them has been reaped since, so that what it left behind may not be listed.
  effects children(instant now, const std::set<pid_t>& pids, bool outdated);
  effects group_killed(instant now, const std::vector<pid_t>& members);
  effects tick(instant now);

  std::optional<instant> next_wakeup() const;
  pid_t supervisor() const { return supervisor_; }
  /// Those whose end is ours to hear of, whenever it comes.
  std::vector<pid_t> awaited() const;
  /// Whether an unknown child is nobody's.
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
  void start_closed(effects& out);
  void start_store_if_free(effects& out);
  void tell_end(effects& out, std::uint64_t process, const record& r) const;
  void sweep_if_idle(effects& out, instant now);
  void finish_sweep(effects& out);
  void present_all(effects& out);

  std::set<int> ending_signals_;
  std::set<pid_t> inherited_;
  bool grouped_;
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
  std::optional<instant> sweep_until_;
  bool group_killed_ = false;
  std::set<pid_t> swept_;
  int sweeps_wanted_ = 0;
  std::set<pid_t> ending_; ///< strays that were killed
  /// Waits until the store that was killed has left its port.
  std::optional<packet> store_wanted_;
};

} // namespace troupe::os
