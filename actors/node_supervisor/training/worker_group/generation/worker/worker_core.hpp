#pragma once

#include "actors/limits.hpp"
#include "actors/node_supervisor/training_program.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/phase_of.hpp"
#include "runtime/base/time.hpp"
#include "runtime/ports/process.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors {

/// The life of one training process, from the order to start it until its end has been told.
///
///   starting ─▶ running ─▶ stopping ─▶ killed ─▶ gone ─▶ told
///
/// A phase may be skipped, none is entered twice. To stop is the asked-for signal, then SIGKILL
/// when the process's time is up, and again for as long as the kernel holds it. When the process is
/// gone the agent hears how, and only when it has noted that does the worker end: well if the
/// process did or was to end, else badly, with the exit in words as the reason. That reason is what
/// the supervisors above pass on. What the process leaves behind is the agent's business (sweep).
class worker_core {
 public:
  enum class phase {
    starting, ///< The process was asked for; an order to stop waits until it is there.
    running,
    stopping, ///< Was signalled; has until `kill_at_`.
    killed,   ///< Was sent SIGKILL; only the kernel can hold it now.
    gone,     ///< The process has ended, or never was; the agent is being told.
    told,     ///< This worker ends.
  };
  /// One way only: a worker that came back from `gone` could signal a process that it does not own
  /// any more.
  static constexpr phase_table<phase> phases{
      "a worker",
      {
          {phase::starting, "starting", {phase::running, phase::gone}},
          {phase::running, "running", {phase::stopping, phase::killed, phase::gone}},
          {phase::stopping, "stopping", {phase::killed, phase::gone}},
          {phase::killed, "killed", {phase::gone}},
          {phase::gone, "gone", {phase::told}},
          {phase::told, "told", {}},
      }};

  struct signal {
    int number;
    bool alone = false; ///< for the process, and not for its group
  };
  /// For the agent.
  struct tell_start {
    messages::msg<messages::WorkerStarted> message;
  };
  /// Find out why the process failed, from its files; answered by `explained`.
  struct explain {
    ports::exit_status status;
  };
  /// A disk does not answer: the start or the reasons are not waited for any longer. Answered by
  /// `unanswered`, with this message.
  struct overdue {
    std::string message;
  };
  /// For the agent; answered by `noted`, also if the agent does not answer.
  struct tell_end {
    messages::msg<messages::WorkerEnded> message;
  };
  /// The worker ends; `why` unless that is well.
  struct quit {
    std::optional<std::string> why;
  };
  struct note {
    log::event event;
  };
  using effect = std::variant<signal, tell_start, explain, overdue, tell_end, quit, note>;
  using effects = std::vector<effect>;

  worker_core(const assignment& place, messages::author author);

  // The process.
  /// It was asked for; answered by `started` or `not_started`.
  void asked(instant now) { answer_until_ = now + limits::start_within; }
  effects started(instant now, std::int32_t pid);
  effects not_started(instant now, const std::string& why, std::int64_t unix_time_ms);
  effects exited(instant now, const ports::exit_status& status);
  effects explained(instant now, const exit_report& why);
  effects unanswered(instant now, const exit_report& why);

  // The supervisor.
  /// The process's work is to end.
  effects stop(instant now, int signal_number, duration within);
  /// The tree goes down and no one is left to wait for the process: it is killed now. A process
  /// that the kernel holds even then is left behind after limits::kill_within, which is said.
  effects shut_down(instant now);

  // The agent.
  effects pass_on(int signal_number, bool alone = false);
  effects noted();

  effects tick(instant now);
  std::optional<instant> next_wakeup() const;

  phase current_phase() const { return phase_; }
  std::string in_words() const;

 private:
  struct stop_wish {
    int signal;
    duration within;
  };

  void kill(effects& out, instant now);
  void tell(effects& out, instant now, const ports::exit_status& status, const exit_report& why,
            bool before_start);
  bool has_process() const { return phase_ > phase::starting && phase_ < phase::gone; }

  assignment place_;
  messages::author author_;
  /// While `starting` there is no pid: what comes meanwhile is in `waiting_` and `ended_already_`.
  phase_of<phases> phase_{phase::starting};
  std::int32_t pid_ = 0;
  std::optional<stop_wish> waiting_; ///< starting: how to end it once it is there
  /// starting: it has ended, and that was heard before that it began.
  std::optional<ports::exit_status> ended_already_;
  /// Of whichever answer is awaited; empty once it has come, so that a later one is none.
  std::optional<instant> answer_until_; ///< starting, or gone and to be explained
  /// Decides whether the worker ends well: an end that was wanted is a good one.
  bool ordered_ = false;  ///< its end was asked for
  bool abandons_ = false; ///< it is not waited for after SIGKILL
  /// Of the first signal that was to end it.
  std::optional<instant> signalled_at_;
  instant kill_at_{};
  /// What the process was given, for the line that says that it was not enough.
  duration within_{};
  ports::exit_status status_;
  /// In the words that travel up the tree if the end was not asked for.
  std::optional<std::string> failed_because_;
};

} // namespace troupe::actors
