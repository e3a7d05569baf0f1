#pragma once

#include "launch/keeper/limits.hpp"
#include "runtime/base/phase_of.hpp"
#include "runtime/base/time.hpp"

#include <csignal>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace troupe::launch {

/// A process that ended workers have left behind: a child of the keeper that it does not know, or a
/// worker that no supervisor has adopted.
struct left_process {
  pid_t pid = 0;
  pid_t group = 0;
  std::string name; ///< the kernel's word for it, for people
  /// It got the signal to end when its worker did: a second one would say "at once" to many
  /// programs.
  bool asked = false;
  /// It was started as a worker, so the sweep does not count it.
  bool is_worker = false;
  /// PyTorch's shared-memory manager. It unlinks what its clients shared 2 s after the last of them
  /// is gone, and not if a signal ends it.
  bool unlinks_memory = false;
  /// It has a device open, or listens on a port that no system picks by itself: the next generation
  /// may want the same.
  bool holds_resource = false;

  bool leads_group() const { return group == pid; }
};

/// One sweep at a time of what ended workers have left behind. Processes below a worker are part of
/// it until they had their time:
///
///   idle ─▶ quiet ─▶ asking ─▶ killing ─▶ idle
///
/// A phase may be skipped, and the sweep is over in any of them once nothing is left. Nothing left:
/// it is over within its first look, so a restart of workers that leave nothing waits for nothing.
///
/// Shared-memory managers are not asked, and the next generation does not wait for them unless they
/// hold what it needs: they hold names that no later process uses. They have a bounded time of
/// their own, which begins when nothing else is left.
class sweep_core {
 public:
  enum class phase {
    idle,    ///< No sweep is wanted.
    quiet,   ///< The workers ended well; what they have left may finish its work (an upload).
    asking,  ///< Whatever has had no signal yet gets SIGTERM, and the rest of its worker's time.
    killing, ///< The time is over: SIGKILL, and for the whole group where it may be.
  };
  static constexpr phase_table<phase> phases{
      "a sweep",
      {
          {phase::idle, "idle", {phase::quiet, phase::asking, phase::killing}},
          {phase::quiet, "quiet", {phase::idle, phase::asking, phase::killing}},
          {phase::asking, "asking", {phase::idle, phase::killing}},
          {phase::killing, "killing", {phase::idle}},
      }};

  /// To the process's whole group, or to the process alone.
  struct signal {
    pid_t pid = 0;
    int number = 0;
    bool group = true;
  };
  /// Kill all processes in the control group, and answer with group_killed(). A process that forks
  /// faster than it is killed one by one does not get away from this.
  struct kill_group {};
  /// Answer with seen(). The list is taken outside and comes back as an event, since processes come
  /// and go while it is read.
  struct look {};
  /// Tell the user that these are waited for. Once in each sweep.
  struct tell_waiting {
    std::vector<left_process> processes;
    duration quiet_left{}; ///< until they are asked to end; zero: they have been
    duration left{};       ///< until they are killed
  };
  /// It is over.
  struct finished {
    std::size_t ended = 0;  ///< went after SIGTERM
    std::size_t killed = 0; ///< went after SIGKILL, or are held by the kernel
  };
  using effect = std::variant<signal, kill_group, look, tell_waiting, finished>;
  using effects = std::vector<effect>;

  struct view {
    std::vector<left_process> left;
    /// A process that was to be swept has been reaped since the list was made, so what it left
    /// behind may not be listed.
    bool outdated = false;
    /// Something else is ending that the sweep waits for; its end brings the next look.
    bool awaits_other = false;
    /// No process in the control group is to live.
    bool group_is_free = false;
  };

  /// `quiet` and `within` from now on, `quiet` ≤ `within`; with `within` of zero they are killed at
  /// once. During a sweep: its rounds find what was left since, and the order with less patience
  /// holds.
  effects wanted(instant now, duration quiet, duration within);
  /// The user wants an end: what is left alone is asked.
  effects hurry(instant now);
  /// The user waits no longer.
  effects kill_now(instant now);
  /// The supervisor that wanted the sweep is gone.
  void cancel();

  /// All that is left at the time when it was listed.
  effects seen(instant now, const view& v);
  effects group_killed(const std::vector<pid_t>& strangers);
  effects tick(instant now);
  std::optional<instant> next_wakeup() const;

  bool under_way() const { return phase_ != phase::idle; }
  phase current_phase() const { return phase_; }

  /// Shared-memory managers that live on, for the keeper's own end: none of them outlives it, and
  /// it waits until they are gone or their time is over.
  bool managers_left() const { return !managers_.empty(); }
  /// Nothing but managers is left: their time begins, if it has not.
  void give_managers_time(instant now);

 private:
  struct manager {
    std::optional<instant> kill_at; ///< set once nothing else is left
    bool killed = false;
  };

  void become_asking(instant now);
  void become_killing(instant now);
  void finish(effects& out);
  void forget_the_gone(const view& v);
  void ask(effects& out, const left_process& p);
  void kill(effects& out, const left_process& p);
  /// What every event ends with: throws unless the state's parts fit each other.
  effects checked(effects out) const;

  phase_of<phases> phase_{phase::idle};
  instant quiet_until_{}, kill_at_{};
  std::optional<instant> tell_at_;    ///< until the user was told what is waited for
  std::vector<left_process> waiting_; ///< at the last look; managers are not among them
  /// Pids that are still children: a pid is free for another process when it is reaped, and that is
  /// seen at the same look.
  std::set<pid_t> asked_, killed_;
  std::map<pid_t, manager> managers_;
  /// Once for each sweep: a group that was killed takes no new process, and the next workers live
  /// in another one.
  bool group_killed_ = false;
  /// Of the sweep under way, for the user.
  std::set<pid_t> counted_asked_, counted_killed_;
};

} // namespace troupe::launch
