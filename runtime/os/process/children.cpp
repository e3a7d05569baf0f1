#include "runtime/os/process/children.hpp"

#include "runtime/base/invariant.hpp"
#include "runtime/base/limits.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::os {

namespace {

using boost::asio::posix::descriptor_base;

/// The children of all threads of this process but one.
std::set<pid_t> children_except_of(pid_t thread) {
  std::set<pid_t> found;
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", gone)) {
    if (task.path().filename() == std::to_string(thread))
      continue;
    // A thread that has ended meanwhile has no children: they are another thread's, and a later
    // round finds them.
    std::ifstream list(task.path() / "children");
    for (pid_t pid = 0; list >> pid;)
      found.insert(pid);
  }
  return found;
}

/// Whether a child of ours had ended; reaps it then.
bool reap_if_ended(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG) == 0 &&
         info.si_pid == pid;
}

} // namespace

children::children(boost::asio::io_context& context, pid_t spawner)
    : context_(context), spawner_(spawner), inherited_(children_except_of(spawner)),
      sweep_deadline_(context), collecting_(context) {}

void children::open() {
  collect_later();
}

void children::watch(ports::process_id process, spawned child, ports::process_host::ended on_end) {
  table_.emplace(process, watched{child.pid, {context_, child.pidfd.release()}, std::move(on_end)});
  await_end(process);
}

void children::await_end(ports::process_id process) {
  auto& entry = table_.at(process);
  entry.pidfd.async_wait(
      descriptor_base::wait_read,
      [self = shared_from_this(), process](const boost::system::error_code& cancelled) {
        if (!cancelled && !self->closed_)
          self->end(process);
      });
}

void children::end(ports::process_id process) {
  const auto entry = table_.find(process);
  invariant(entry != table_.end(), "a process ended twice");
  const auto status = reap(entry->second.pidfd.native_handle());
  if (!status) {
    await_end(process);
    return;
  }
  const auto on_end = std::move(entry->second.on_end);
  table_.erase(entry);
  on_end(*status);
}

void children::signal(ports::process_id process, int number) {
  const auto entry = table_.find(process);
  if (entry != table_.end())
    ::kill(-entry->second.pid, number);
}

std::set<pid_t> children::strays() {
  std::set<pid_t> found;
  for (const pid_t pid : children_except_of(spawner_)) {
    if (ending_.count(pid) != 0)
      continue;
    if (reap_if_ended(pid))
      inherited_.erase(pid);
    else if (inherited_.count(pid) == 0)
      found.insert(pid);
  }
  return found;
}

void children::sweep(std::function<void(std::size_t killed)> done) {
  wanted_.push_back(std::move(done));
  if (current_.empty())
    begin_sweep();
}

void children::begin_sweep() {
  current_.swap(wanted_);
  killed_ = 0;
  sweep_deadline_.expires_after(limits::kill_within);
  sweep_deadline_.async_wait(
      [self = shared_from_this(), number = ++sweeps_](const boost::system::error_code& cancelled) {
        // A cancelled timer may have fired already; then a later sweep is under way, or none.
        if (!cancelled && !self->closed_ && number == self->sweeps_ && !self->current_.empty())
          self->finish_sweep();
      });
  kill_strays();
}

/// One round. What the killed leave behind is ours by the time their end is announced, and meets
/// the next round.
void children::kill_strays() {
  bool unwatched = false;
  for (const pid_t pid : strays()) {
    ::kill(pid, SIGKILL);
    ++killed_;
    if (auto pidfd = open_pidfd(pid)) {
      ending_.emplace(pid, boost::asio::posix::stream_descriptor(context_, pidfd.release()));
      await_end_of_stray(pid);
    } else {
      unwatched = true;
    }
  }
  // Those we could not watch, for lack of file descriptors, are waited for until the deadline.
  if (ending_.empty() && !unwatched)
    finish_sweep();
}

void children::await_end_of_stray(pid_t pid) {
  ending_.at(pid).async_wait(
      descriptor_base::wait_read,
      [self = shared_from_this(), pid](const boost::system::error_code& cancelled) {
        if (!cancelled && !self->closed_)
          self->stray_ended(pid);
      });
}

void children::stray_ended(pid_t pid) {
  if (!reap_if_ended(pid)) {
    await_end_of_stray(pid);
    return;
  }
  ending_.erase(pid);
  if (ending_.empty() && !current_.empty())
    kill_strays();
}

void children::finish_sweep() {
  sweep_deadline_.cancel();
  const auto done = std::move(current_);
  current_.clear();
  const auto killed = killed_;
  if (!wanted_.empty())
    begin_sweep();
  for (const auto& tell : done)
    tell(killed);
}

/// Reaps strays that ended by themselves, so that a worker that daemonizes often cannot fill the
/// process table.
void children::collect_later() {
  collecting_.expires_after(limits::collect_strays_every);
  collecting_.async_wait([self = shared_from_this()](const boost::system::error_code& cancelled) {
    if (cancelled || self->closed_)
      return;
    (void)self->strays();
    self->collect_later();
  });
}

void children::kill_and_reap(pid_t group, int pidfd, instant deadline) {
  ::kill(group, SIGKILL);
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  pollfd ended{pidfd, POLLIN, 0};
  (void)::poll(&ended, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
  (void)reap(pidfd);
}

void children::close() {
  closed_ = true;
  sweep_deadline_.cancel();
  collecting_.cancel();
  const instant deadline = std::chrono::steady_clock::now() + limits::kill_within;
  for (auto& [process, entry] : table_)
    ::kill(-entry.pid, SIGKILL);
  for (auto& [process, entry] : table_)
    kill_and_reap(-entry.pid, entry.pidfd.native_handle(), deadline);
  table_.clear();
  for (auto& [pid, pidfd] : ending_)
    kill_and_reap(pid, pidfd.native_handle(), deadline);
  ending_.clear();
  for (auto left = strays(); !left.empty() && std::chrono::steady_clock::now() < deadline;
       left = strays())
    for (const pid_t pid : left)
      if (const auto pidfd = open_pidfd(pid))
        kill_and_reap(pid, pidfd.get(), deadline);
}

} // namespace troupe::os
