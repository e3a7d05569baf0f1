#include "runtime/os/console/follower.hpp"

#include "runtime/base/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

namespace troupe::os {

namespace {

std::string system_message() {
  return std::generic_category().message(errno);
}

template<class Body>
std::thread start_without_signals(Body body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread started(std::move(body));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

} // namespace

result<std::shared_ptr<file_relay::follower>> file_relay::follower::start(console_target target) {
  unique_fd changes(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!changes)
    return failure(errc::refused,
                   fmt::format("the workers' output cannot be followed (inotify: {}); raise "
                               "fs.inotify.max_user_instances, or do without --tee",
                               system_message()));
  unique_fd wakeup(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wakeup)
    return failure(errc::refused,
                   fmt::format("the workers' output cannot be followed: {}", system_message()));
  std::shared_ptr<follower> made(
      new follower(std::move(target), std::move(changes), std::move(wakeup)));
  std::promise<void> ended;
  made->ended_ = ended.get_future();
  made->thread_ = start_without_signals([self = made, ended = std::move(ended)]() mutable {
    ::pthread_setname_np(::pthread_self(), "troupe-console");
    self->run();
    ended.set_value();
  });
  return made;
}

void file_relay::follower::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake();
  // It may be stuck in a write to a console that is not read; then it goes with the process.
  if (ended_.wait_for(limits::engine_patience) == std::future_status::ready)
    thread_.join();
  else
    thread_.detach();
}

result<void> file_relay::follower::follow(id number, const ports::relayed_file& file) {
  auto opened = followed_file::open(number, file);
  if (!opened)
    return tl::make_unexpected(opened.error());
  const int watch = ::inotify_add_watch(changes_.get(), file.path.c_str(), IN_MODIFY);
  if (watch < 0)
    return failure(errc::refused, fmt::format("log file '{}' cannot be followed (inotify: {})",
                                              file.path, system_message()));
  (*opened)->watched_as(watch);
  {
    const std::lock_guard lock(mutex_);
    files_.emplace(number, *opened);
    arrived_.push_back(std::move(*opened));
  }
  wake();
  return {};
}

void file_relay::follower::finish(id number) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = files_.find(number); found != files_.end())
      finished_.push_back(found->second);
  }
  wake();
}

void file_relay::follower::finish_all() {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, file] : files_)
      finished_.push_back(file);
  }
  wake();
}

bool file_relay::follower::wait_until_idle(duration patience, instant deadline) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto before = taken_.load();
    const auto until = std::min(std::chrono::steady_clock::now() + patience, deadline);
    if (idle_.wait_until(lock, until, [this] { return files_.empty(); }))
      return true;
    if (taken_ == before || std::chrono::steady_clock::now() >= deadline)
      return false;
  }
}

std::vector<ports::unshown_output> file_relay::follower::unshown() {
  const std::lock_guard lock(mutex_);
  auto all = lost_;
  for (const auto& [number, file] : files_)
    if (auto left = file->unshown(); left.bytes > 0)
      all.push_back(std::move(left));
  return all;
}

void file_relay::follower::wake() const {
  const std::uint64_t one = 1;
  (void)!::write(wakeup_.get(), &one, sizeof one);
}

// ---- the thread ----

void file_relay::follower::run() {
  alone_ = std::unique_lock(*target_.alone, std::defer_lock);
  while (take_orders()) {
    note_changes();
    if (const auto file = next_ready())
      serve(file);
    else
      wait();
  }
  if (alone_.owns_lock())
    alone_.unlock();
}

/// Answers whether to go on.
bool file_relay::follower::take_orders() {
  const std::lock_guard lock(mutex_);
  for (auto& file : arrived_) {
    by_watch_[file->watch()] = file;
    mark_ready(file);
  }
  arrived_.clear();
  for (auto& file : finished_) {
    file->end_here();
    mark_ready(file);
  }
  finished_.clear();
  return !stopping_;
}

void file_relay::follower::note_changes() {
  alignas(inotify_event) std::array<char, 4096> events;
  for (;;) {
    const auto size = ::read(changes_.get(), events.data(), events.size());
    if (size <= 0)
      return;
    for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
      const auto* event = reinterpret_cast<const inotify_event*>(events.data() + at);
      at += sizeof *event + event->len;
      if (event->mask & IN_Q_OVERFLOW) {
        for (const auto& [watch, file] : by_watch_)
          mark_ready(file);
      } else if (const auto found = by_watch_.find(event->wd); found != by_watch_.end()) {
        mark_ready(found->second);
      }
    }
  }
}

void file_relay::follower::mark_ready(const std::shared_ptr<followed_file>& file) {
  if (std::exchange(file->ready, true))
    return;
  ready_.push_back(file);
}

/// In turn; but while a line passes in pieces, only its file.
std::shared_ptr<followed_file> file_relay::follower::next_ready() {
  auto next = within_line_ ? std::find(ready_.begin(), ready_.end(), within_line_) : ready_.begin();
  if (next == ready_.end())
    return nullptr;
  auto file = std::move(*next);
  ready_.erase(next);
  file->ready = false;
  return file;
}

void file_relay::follower::serve(const std::shared_ptr<followed_file>& file) {
  if (broken_)
    return let_go_if_ended(file);
  shown_.clear();
  kept_.clear();
  if (block_.size() < file->block_size())
    block_.resize(file->block_size());
  const bool more = file->advance(block_, shown_, kept_);
  pass_on(file);
  if (more)
    mark_ready(file);
  else
    let_go_if_ended(file);
}

/// Writes what was prepared, and keeps the console while that ends within a line.
void file_relay::follower::pass_on(const std::shared_ptr<followed_file>& file) {
  if (!alone_.owns_lock())
    alone_.lock();
  if (write_shown())
    file->commit(kept_);
  const bool within = file->within_line() && !broken_;
  within_line_ = within ? file : nullptr;
  piece_until_ = std::chrono::steady_clock::now() + limits::console_piece_waits;
  if (!within)
    alone_.unlock();
}

bool file_relay::follower::write_shown() {
  for (std::size_t at = 0; at < shown_.size();) {
    const auto size = std::min(shown_.size() - at, limits::console_write_max);
    const auto written = ::write(target_.descriptor, shown_.data() + at, size);
    if (written > 0) {
      at += static_cast<std::size_t>(written);
      taken_ += static_cast<std::uint64_t>(written);
    } else if (errno == EAGAIN) {
      // Another process on this terminal has set it to non-blocking.
      pollfd console{target_.descriptor, POLLOUT, 0};
      (void)::poll(&console, 1, -1);
    } else if (errno != EINTR) {
      broken_ = true;
      return false;
    }
  }
  return true;
}

void file_relay::follower::let_go_if_ended(const std::shared_ptr<followed_file>& file) {
  if (!file->ended())
    return;
  by_watch_.erase(file->watch());
  ::inotify_rm_watch(changes_.get(), file->watch());
  const std::lock_guard lock(mutex_);
  auto left = file->unshown();
  if (broken_ && left.bytes > 0 && lost_.size() < limits::local_world_max)
    lost_.push_back(std::move(left));
  files_.erase(file->number());
  idle_.notify_all();
}

void file_relay::follower::wait() {
  int within = -1;
  if (within_line_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        piece_until_ - std::chrono::steady_clock::now());
    if (left.count() <= 0)
      return end_waiting_line();
    within = static_cast<int>(left.count());
  }
  std::array<pollfd, 2> events{{{changes_.get(), POLLIN, 0}, {wakeup_.get(), POLLIN, 0}}};
  (void)::poll(events.data(), events.size(), within);
  std::uint64_t ignored = 0;
  (void)!::read(wakeup_.get(), &ignored, sizeof ignored);
}

/// Others have waited long enough for the rest of a line.
void file_relay::follower::end_waiting_line() {
  const auto file = within_line_;
  shown_.clear();
  kept_.clear();
  file->end_line(shown_, kept_);
  pass_on(file);
}

} // namespace troupe::os
