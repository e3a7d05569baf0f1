#include "runtime/os/keeper/keeper.hpp"

#include "runtime/base/invariant.hpp"
#include "runtime/os/keeper/keeper_core.hpp"
#include "runtime/os/keeper/undertaker.hpp"
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

namespace troupe::os {

namespace {

instant now() {
  return std::chrono::steady_clock::now();
}

/// All of them: this process has one thread.
std::set<pid_t> own_children() {
  std::set<pid_t> found;
  std::ifstream list("/proc/thread-self/children");
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

class keeper {
 public:
  explicit keeper(const keeper_options& o)
      : options_(o), inherited_(own_children()),
        group_(o.grouped ? control_group::make() : failure(errc::refused, "not wanted")),
        core_({o.ending_signals.begin(), o.ending_signals.end()}, inherited_, group_.has_value()) {}

  int run() {
    prepare();
    perform(core_.begin(now()));
    while (!core_.finished())
      turn();
    return end();
  }

 private:
  void prepare() {
    invariant(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0,
              "this kernel has no child subreapers");
    ::signal(SIGCHLD, SIG_DFL); // ignored, the kernel would reap before we learn how they ended
    sigset_t heard;
    sigemptyset(&heard);
    sigaddset(&heard, SIGCHLD);
    for (const auto& several : {options_.ending_signals, options_.passed_on_signals})
      for (const int number : several)
        sigaddset(&heard, number);
    invariant(::sigprocmask(SIG_BLOCK, &heard, &mask_before_) == 0,
              "the signals cannot be blocked");
    // What is ignored never reaches a signalfd.
    for (const auto& several : {options_.ending_signals, options_.passed_on_signals})
      for (const int number : several)
        ::signal(number, SIG_DFL);
    signals_ = unique_fd(::signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK));
    invariant(signals_.operator bool(), "no signalfd can be made");
    undertaker_ = start_undertaker({options_.mark, own_group(), options_.tidy_up});
  }

  const control_group* own_group() const { return group_ ? &*group_ : nullptr; }

  void turn() {
    std::array<pollfd, 2> ready{
        {{signals_.get(), POLLIN, 0},
         {channel_.get(), static_cast<short>(unsent_.empty() ? POLLIN : POLLIN | POLLOUT), 0}}};
    (void)::poll(ready.data(), ready.size(), patience());
    flush();
    receive();
    take_signals();
    // Who comes late himself looks at what has happened before he says that it took too long.
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

  void receive() {
    while (channel_)
      if (auto got = receive_packet(channel_.get(), false))
        take(std::move(*got));
      else
        break;
  }

  void take(received_packet got) {
    const auto place = static_cast<std::size_t>(got.what.number);
    if (got.what.what == packet::kind::keep && place < kept_.size())
      kept_[place] = std::move(got.file);
    else if (got.what.what == packet::kind::open_store)
      store_answer_ = std::move(got.file);
    perform(core_.received(now(), got.what));
  }

  void take_signals() {
    bool ended = false;
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info)
      if (info.ssi_signo == SIGCHLD)
        ended = true;
      else
        perform(core_.user_signal(now(), static_cast<int>(info.ssi_signo)));
    if (ended)
      reap();
  }

  void reap() {
    if (undertaker_ > 0 && reaped(undertaker_))
      undertaker_ = start_undertaker({options_.mark, own_group(), options_.tidy_up});
    if (const pid_t supervisor = core_.supervisor(); supervisor > 0)
      if (const auto how = reaped(supervisor))
        bury_supervisor(*how);
    look_wanted_ = true;
  }

  /// What it had sent before it ended counts.
  void bury_supervisor(const ports::exit_status& how) {
    receive();
    channel_ = {};
    unsent_.clear();
    perform(core_.supervisor_ended(now(), how));
  }

  /// Whoever is in the list was cloned before, so what was said before that has arrived then, and
  /// who is not known by now is a stray, unless a start is under way.
  void look() {
    look_wanted_ = false;
    auto pids = own_children();
    receive();
    const auto awaited = core_.awaited();
    bool outdated = false;
    for (const pid_t pid : awaited) {
      pids.erase(pid);
      if (pid != core_.supervisor())
        if (const auto how = reaped(pid)) {
          outdated = true;
          perform(core_.child_ended(now(), pid, *how));
        }
    }
    pids.erase(undertaker_);
    if (!core_.strays_may_be_reaped())
      return;
    for (auto pid = pids.begin(); pid != pids.end();)
      if (reaped(*pid)) {
        outdated = true;
        pid = pids.erase(pid);
      } else {
        ++pid;
      }
    perform(core_.children(now(), pids, outdated));
  }

  void perform(const keeper_core::effects& effects) {
    for (const auto& e : effects)
      std::visit([this](const auto& what) { act(what); }, e);
  }

  void act(const keeper_core::start_supervisor&) {
    auto [ours, theirs] = packet_pair();
    const pid_t pid = fork_child([this, socket = theirs.get(), other = ours.get()] {
      ::close(other);
      supervise(socket);
    });
    channel_ = std::move(ours);
    perform(core_.supervisor_started(now(), pid));
  }

  void act(const keeper_core::start_store& e) {
    const pid_t pid = fork_child([this, &e] {
      channel_ = {};
      ::prctl(PR_SET_NAME, "troupe-store");
      options_.serve_store(e.order, store_answer_);
    });
    store_answer_ = {};
    perform(core_.store_started(now(), e.order, pid));
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

  void act(const keeper_core::finish& e) {
    exit_code_ = e.exit_code;
    if (!e.complaint.empty())
      options_.complain(e.complaint);
  }

  void flush() {
    while (channel_ && !unsent_.empty() && send_packet(channel_.get(), unsent_.front(), -1, false))
      unsent_.pop_front();
  }

  /// A child with our memory and none of our duties.
  template<class Body>
  pid_t fork_child(Body body) {
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    invariant(pid >= 0, "no process can be forked");
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
    keeper_client client(unique_fd(socket), std::move(kept_), std::move(group_));
    const int code = options_.supervise(client);
    client.over(code);
    ::_exit(code);
  }

  /// Nobody may be left, whoever failed to see to that.
  int end() {
    const instant deadline = now() + limits::kill_within;
    for (;;) {
      for (const pid_t pid : core_.awaited())
        ::kill(-pid, SIGKILL);
      auto left = own_children();
      left.erase(undertaker_);
      for (const pid_t pid : inherited_)
        left.erase(pid);
      for (const pid_t pid : left) {
        ::kill(pid, SIGKILL);
        (void)reaped(pid);
      }
      const bool group_gone = !group_ || group_->remove();
      if (!group_gone)
        group_->kill();
      if ((left.empty() && group_gone) || now() >= deadline)
        break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (undertaker_ > 0) {
      ::kill(undertaker_, SIGKILL);
      siginfo_t ignored{};
      (void)::waitid(P_PID, static_cast<id_t>(undertaker_), &ignored, WEXITED);
    }
    return exit_code_;
  }

  const keeper_options& options_;
  const std::set<pid_t> inherited_;
  result<control_group> group_;
  keeper_core core_;
  sigset_t mask_before_{};
  unique_fd signals_;
  unique_fd channel_;
  std::deque<packet> unsent_;
  std::array<unique_fd, limits::kept_places> kept_;
  unique_fd store_answer_;
  pid_t undertaker_ = 0;
  int exit_code_ = 1;
  bool look_wanted_ = false;
};

} // namespace

int run_keeper(const keeper_options& options) {
  if (::access("/proc/thread-self/children", R_OK) != 0) {
    options.complain(
        fmt::format("/proc/thread-self/children cannot be read ({}): without it, what training "
                    "processes leave behind cannot be found",
                    system_message(errno)));
    return 1;
  }
  return keeper(options).run();
}

} // namespace troupe::os
