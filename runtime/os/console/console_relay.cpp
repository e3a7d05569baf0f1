#include "runtime/os/console/console_relay.hpp"

#include "runtime/base/limits.hpp"
#include "runtime/os/console/follower.hpp"

#include <spdlog/details/console_globals.h>

#include <chrono>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

namespace troupe::os {

file_relay::file_relay(console_target out, console_target err)
    : targets_{std::move(out), std::move(err)} {}

file_relay::~file_relay() {
  for (const auto& one : followers())
    one->stop();
}

result<file_relay::id> file_relay::follow(const ports::relayed_file& file) {
  auto one = follower_of(file.to);
  if (!one)
    return tl::make_unexpected(one.error());
  const std::lock_guard lock(mutex_);
  const auto number = ++last_;
  if (auto followed = (*one)->follow(number, file); !followed)
    return tl::make_unexpected(followed.error());
  return number;
}

result<std::shared_ptr<file_relay::follower>>
file_relay::follower_of(ports::console_stream stream) {
  const auto index = static_cast<std::size_t>(stream);
  const std::lock_guard lock(mutex_);
  if (!followers_[index]) {
    auto started = follower::start(targets_[index]);
    if (!started)
      return tl::make_unexpected(started.error());
    followers_[index] = std::move(*started);
  }
  return followers_[index];
}

std::vector<std::shared_ptr<file_relay::follower>> file_relay::followers() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<follower>> started;
  for (const auto& one : followers_)
    if (one)
      started.push_back(one);
  return started;
}

void file_relay::finish(id file) {
  for (const auto& one : followers())
    one->finish(file);
}

std::vector<ports::unshown_output> file_relay::drain(duration patience) {
  const auto all = followers();
  for (const auto& one : all)
    one->finish_all();
  const instant deadline = std::chrono::steady_clock::now() + limits::console_drain_within;
  std::vector<ports::unshown_output> left;
  for (const auto& one : all) {
    one->wait_until_idle(one->shows_on_disk() ? limits::console_drain_within : patience, deadline);
    for (auto& file : one->unshown())
      left.push_back(std::move(file));
  }
  return left;
}

std::array<console_target, 2> own_console() {
  // spdlog's terminal sinks share this one.
  std::shared_ptr<std::mutex> terminal(&spdlog::details::console_mutex::mutex(), [](auto*) {});
  struct stat out {
  }, err{};
  const bool same = ::fstat(STDOUT_FILENO, &out) == 0 && ::fstat(STDERR_FILENO, &err) == 0 &&
                    out.st_dev == err.st_dev && out.st_ino == err.st_ino;
  return {{{STDOUT_FILENO, same ? terminal : std::make_shared<std::mutex>()},
           {STDERR_FILENO, terminal}}};
}

} // namespace troupe::os
