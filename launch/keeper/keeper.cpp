#include "launch/keeper/keeper.hpp"

#include "launch/keeper/keeper_core.hpp"
#include "launch/keeper/last_words.hpp"
#include "launch/keeper/left_process.hpp"
#include "launch/keeper/life_record.hpp"
#include "launch/keeper/orphan_reaper.hpp"
#include "runtime/os/process/launch_plan.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::launch {

namespace {

instant now() {
  return std::chrono::steady_clock::now();
}

/// All of them: this process has one thread. Nothing if the list cannot be read, as when the system
/// is out of files.
std::optional<std::set<pid_t>> own_children() {
  std::ifstream list("/proc/thread-self/children");
  if (!list)
    return std::nullopt;
  std::set<pid_t> found;
  for (pid_t pid = 0; list >> pid;)
    found.insert(pid);
  return found;
}

std::optional<ports::exit_status> reaped(pid_t pid) {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG) != 0 || info.si_pid != pid)
    return std::nullopt;
  return ports::exit_status{info.si_code != CLD_EXITED, info.si_status};
}

/// Whether a child has been stopped or continued since this was asked last: the newer of the two.
/// What a tracer does to it is not told to its parent.
std::optional<int> stop_or_continuation(pid_t pid) {
  std::optional<int> newest;
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WCONTINUED | WNOHANG) == 0 &&
         info.si_pid == pid) {
    newest = info.si_code;
    info = {};
  }
  return newest;
}

class keeper {
 public:
  explicit keeper(const keeper_options& o)
      : options_(o), inherited_(own_children().value_or(std::set<pid_t>())),
        group_(o.grouped ? control_group::make() : failure(errc::refused, "not wanted")),
        core_({o.ending_signals.begin(), o.ending_signals.end()}, inherited_, group_.has_value(),
              group_.has_value() || !o.mark.empty()) {}

  int run() {
    if (const auto prepared = prepare(); !prepared) {
      options_.report_error(prepared.error().what);
      return exit_code_;
    }
    make_record();
    perform(core_.begin(now()));
    while (!core_.finished())
      turn();
    return end();
  }

 private:
  result<void> prepare() {
    if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
      return without("child subreapers (prctl PR_SET_CHILD_SUBREAPER)");
    ::signal(SIGCHLD, SIG_DFL); // ignored, the kernel would reap before we learn how they ended
    sigset_t heard;
    sigemptyset(&heard);
    sigaddset(&heard, SIGCHLD);
    for (const auto& several : {options_.ending_signals, options_.passed_on_signals})
      for (const int number : several)
        sigaddset(&heard, number);
    // Ctrl-Z, unless the user wants it passed on, or this process was started with it ignored.
    hears_stop_ = sigismember(&heard, SIGTSTP) == 0 && ::signal(SIGTSTP, SIG_DFL) != SIG_IGN;
    if (hears_stop_)
      sigaddset(&heard, SIGTSTP);
    else
      ::signal(SIGTSTP, SIG_IGN);
    // In the background a terminal must not stop us either, for what we write to it or read.
    ::signal(SIGTTOU, SIG_IGN);
    ::signal(SIGTTIN, SIG_IGN);
    if (::sigprocmask(SIG_BLOCK, &heard, &mask_before_) != 0)
      return without("signal masks");
    // What is ignored never reaches a signalfd.
    for (const auto& several : {options_.ending_signals, options_.passed_on_signals})
      for (const int number : several)
        ::signal(number, SIG_DFL);
    signals_ = os::unique_fd(::signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_)
      return without("signalfd");
    return {};
  }

  void make_record() {
    if (options_.records.empty() || options_.mark.empty())
      return;
    auto made = life_record::make(options_.records, options_.mark);
    if (made)
      record_.emplace(std::move(*made));
    else
      options_.report_error(
          fmt::format("if this launcher is killed with all its processes, the next "
                      "one cannot end the daemons of its workers: {}",
                      made.error().what));
  }

  static tl::unexpected<error> without(const char* what) {
    return failure(errc::unavailable,
                   fmt::format("no job can be run here: the system refuses {}: {}", what,
                               os::system_message(errno)));
  }

  const control_group* own_group() const { return group_ ? &*group_ : nullptr; }

  void turn() {
    std::array<pollfd, 2> ready{
        {{signals_.get(), POLLIN, 0},
         {channel_.get(), static_cast<short>(unsent_.empty() ? POLLIN : POLLIN | POLLOUT), 0}}};
    (void)::poll(ready.data(), ready.size(), patience());
    flush();
    receive();
    if ((ready[1].revents & POLLHUP) != 0)
      let_go();
    take_signals();
    // A keeper that comes late looks at what has happened before it says that it took too long.
    look_while_wanted();
    perform(core_.tick(now()));
    look_while_wanted();
  }

  void look_while_wanted() {
    while (look_wanted_ && !core_.finished())
      look();
  }

  int patience() const {
    const auto wakeup = core_.next_wakeup();
    if (!wakeup)
      return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*wakeup - now());
    return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
  }

  /// A supervisor that has closed its end can neither be told anything nor tell anything: if it is
  /// not ending anyway, it hangs on its way out.
  void let_go() {
    channel_ = {};
    unsent_.clear();
    ::kill(core_.supervisor(), SIGKILL);
  }

  void receive() {
    while (channel_)
      if (auto got = receive_packet(channel_.get(), false))
        take(std::move(*got));
      else
        break;
  }

  void take(received_packet got) {
    if (!got.what)
      return perform(core_.not_understood(got.what.error().what));
    if (got.what->is<messages::StoreWanted>())
      store_answer_ = std::move(got.file);
    else
      file_ = std::move(got.file);
    perform(core_.received(now(), *got.what));
  }

  void take_signals() {
    bool ended = false;
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info)
      if (info.ssi_signo == SIGCHLD)
        ended = true;
      else if (info.ssi_signo == SIGTSTP && hears_stop_)
        perform(core_.stop_asked_for());
      else
        perform(core_.user_signal(now(), static_cast<int>(info.ssi_signo)));
    if (ended)
      reap();
  }

  void reap() {
    if (const pid_t supervisor = core_.supervisor(); supervisor > 0) {
      if (const auto code = stop_or_continuation(supervisor))
        perform(*code == CLD_STOPPED ? core_.supervisor_stopped(now())
                                     : core_.supervisor_continued());
      if (const auto how = reaped(supervisor))
        bury_supervisor(*how);
    }
    look_wanted_ = true;
  }

  /// What it had sent before it ended counts.
  void bury_supervisor(const ports::exit_status& how) {
    receive();
    channel_ = {};
    unsent_.clear();
    perform(core_.supervisor_ended(now(), how));
  }

  /// A process in the list was cloned before the list was made, so what the supervisor said before
  /// that clone has arrived by then. A process that is not known by now is a stray, unless a start
  /// is under way.
  void look() {
    look_wanted_ = false;
    const auto listed = own_children();
    receive();
    const auto awaited = core_.awaited();
    auto pids = listed.value_or(std::set<pid_t>());
    bool outdated = false;
    for (const pid_t pid : awaited) {
      pids.erase(pid);
      if (pid != core_.supervisor())
        if (const auto how = reaped(pid)) {
          outdated = true;
          perform(core_.child_ended(now(), pid, *how));
        }
    }
    // Without the list no stray is known: what waits for strays waits for its own limit.
    if (!listed || !core_.strays_may_be_reaped())
      return;
    for (auto pid = pids.begin(); pid != pids.end();)
      if (reaped(*pid)) {
        outdated = true;
        pid = pids.erase(pid);
      } else {
        ++pid;
      }
    std::vector<left_process> left;
    for (const pid_t pid : pids)
      left.push_back(look_at(pid));
    perform(core_.children(now(), left, outdated));
  }

  void perform(const keeper_core::effects& effects) {
    for (const auto& e : effects)
      std::visit([this](const auto& what) { act(what); }, e);
  }

  void act(const keeper_core::start_supervisor&) {
    auto [ours, theirs] = packet_pair();
    if (!ours)
      return perform(core_.supervisor_not_started(now(), os::system_message(errno)));
    const auto pid = fork_child([this, socket = theirs.get(), other = ours.get()] {
      ::close(other);
      supervise(socket);
    });
    if (!pid)
      return perform(core_.supervisor_not_started(now(), pid.error().what));
    channel_ = std::move(ours);
    perform(core_.supervisor_started(now(), *pid));
  }

  void act(const keeper_core::start_store& e) {
    const auto pid = fork_child([this, &e] {
      channel_ = {};
      ::prctl(PR_SET_NAME, "troupe-store");
      options_.serve_store(e.order, store_answer_);
    });
    if (!pid)
      return perform(core_.store_not_started(now(), e.order, pid.error().what));
    store_answer_ = {};
    perform(core_.store_started(now(), e.order, *pid));
  }

  void act(const keeper_core::refuse_store& e) {
    const auto answer = messages::local<messages::StoreRefused>(
        keeper_core::said_by, [&e](auto b) { b.setWhy(fit_for_packet(e.why)); });
    (void)send_packet(store_answer_.get(), answer.any(), -1, false);
    store_answer_ = {};
  }

  void act(const keeper_core::keep_file& e) { kept_.at(e.slot) = std::move(file_); }

  void act(const keeper_core::start_orphan_reaper&) {
    const auto pid =
        start_orphan_reaper({options_.mark, own_group(), [this] { tidy_after_others(); },
                             [this] { tidy_up(); }, options_.fork});
    perform(pid ? core_.orphan_reaper_started(now(), *pid)
                : core_.orphan_reaper_not_started(now(), pid.error().what));
  }

  void tidy_after_others() const {
    if (group_)
      group_->end_abandoned();
    bury_the_dead(options_.records);
    options_.tidy_after_others();
  }

  /// After everything has ended, in the last process there is.
  void tidy_up() const {
    options_.tidy_up();
    if (record_)
      record_->remove();
  }

  void act(const keeper_core::send& e) {
    if (!channel_)
      return;
    // One that takes nothing any more is of no use; its successor is told everything anew.
    if (unsent_.size() >= limits::keeper_queue_max)
      ::kill(core_.supervisor(), SIGKILL);
    else
      unsent_.push_back(e.what);
    flush();
  }

  void act(const keeper_core::signal& e) { ::kill(e.group ? -e.pid : e.pid, e.number); }

  void act(const keeper_core::kill_group&) {
    const auto members = group_->members();
    group_->kill();
    group_->tidy();
    perform(core_.group_killed(now(), members));
  }

  void act(const keeper_core::look&) { look_wanted_ = true; }

  void act(const keeper_core::report_error& e) { options_.report_error(e.what); }

  /// Stops, which is what a shell waits for, and is continued by a child that lives only for that.
  /// The child repeats the signal: one that came before the stop would be lost.
  void act(const keeper_core::leave_foreground&) {
    const auto alarm = fork_child([parent = ::getpid()] {
      for (;;) {
        std::this_thread::sleep_for(limits::stopped_for_the_shell);
        ::kill(parent, SIGCONT);
      }
    });
    if (!alarm)
      return; // a process that cannot be continued must not be stopped
    ::kill(::getpid(), SIGSTOP);
    ::kill(*alarm, SIGKILL);
    siginfo_t ignored{};
    (void)::waitid(P_PID, static_cast<id_t>(*alarm), &ignored, WEXITED);
  }

  void act(const keeper_core::finish& e) {
    exit_code_ = e.exit_code;
    if (!e.error.empty())
      options_.report_error(e.error);
  }

  void flush() {
    while (channel_ && !unsent_.empty() && send_packet(channel_.get(), unsent_.front(), -1, false))
      unsent_.pop_front();
  }

  /// A child with our memory and none of our duties; `unavailable` if the system refuses it.
  template<class Body>
  result<pid_t> fork_child(Body body) {
    const pid_t parent = ::getpid();
    const pid_t pid = options_.fork();
    if (pid < 0)
      return failure(errc::unavailable, fork_problem(errno));
    if (pid > 0)
      return pid;
    // A session of its own: what the terminal sends to its foreground group is ours to pass on.
    ::setsid();
    ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (::getppid() != parent)
      ::_exit(1);
    for (const auto& several : {options_.ending_signals, options_.passed_on_signals})
      for (const int number : several)
        ::signal(number, SIG_IGN);
    ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
    signals_ = {};
    body();
    ::_exit(1);
  }

  void supervise(int socket) {
    ::prctl(PR_SET_NAME, "troupe-node");
    channel_ = {};
    store_answer_ = {};
    keeper_client client(os::unique_fd(socket), std::move(kept_), std::move(group_));
    say_last_words_to(client);
    const int code = options_.supervise(client);
    client.over(code);
    ::_exit(code);
  }

  /// No process may be left, whichever component failed to see to that.
  int end() {
    const instant deadline = now() + limits::kill_within;
    for (;;) {
      for (const pid_t pid : core_.awaited())
        if (pid != core_.orphan_reaper())
          ::kill(-pid, SIGKILL);
      const auto listed = own_children();
      auto left = listed.value_or(std::set<pid_t>());
      left.erase(core_.orphan_reaper());
      for (const pid_t pid : inherited_)
        left.erase(pid);
      for (const pid_t pid : left) {
        ::kill(pid, SIGKILL);
        (void)reaped(pid);
      }
      const bool group_gone = !group_ || group_->remove();
      if (!group_gone)
        group_->kill();
      if ((listed && left.empty() && group_gone) || now() >= deadline)
        break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (const pid_t last = core_.orphan_reaper(); last > 0) {
      ::kill(last, SIGKILL);
      siginfo_t ignored{};
      (void)::waitid(P_PID, static_cast<id_t>(last), &ignored, WEXITED);
    }
    if (record_)
      record_->remove();
    return exit_code_;
  }

  const keeper_options& options_;
  const std::set<pid_t> inherited_;
  result<control_group> group_;
  keeper_core core_;
  sigset_t mask_before_{};
  os::unique_fd signals_;
  os::unique_fd channel_;
  std::deque<messages::any_msg> unsent_;
  std::array<os::unique_fd, limits::kept_slots> kept_;
  os::unique_fd file_; ///< that came with the message being handled
  os::unique_fd store_answer_;
  /// All processes that are forked from this one hold its lock, but for the orphan reaper.
  std::optional<life_record> record_;
  bool hears_stop_ = false;
  int exit_code_ = 1;
  bool look_wanted_ = false;
};

} // namespace

int run_keeper(const keeper_options& options) {
  if (::access("/proc/thread-self/children", R_OK) != 0) {
    options.report_error(
        fmt::format("/proc/thread-self/children cannot be read ({}): without it, what training "
                    "processes leave behind cannot be found (mount /proc; the kernel needs "
                    "CONFIG_PROC_CHILDREN)",
                    os::system_message(errno)));
    return 1;
  }
  return keeper(options).run();
}

} // namespace troupe::launch
