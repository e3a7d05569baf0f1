#include "launch/keeper/kept_process_host.hpp"

#include "runtime/os/call_on.hpp"
#include "runtime/os/process/spawn.hpp"

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace troupe::launch {

struct kept_process_host::ends {
  std::mutex mutex;
  std::condition_variable no_sweep;
  std::map<ports::process_id, ended> awaited;
  /// Survivors that are to be adopted. The end of one is told once, and may come before its owner
  /// is there: a sweep in between makes the keeper forget it.
  std::map<ports::process_id, std::optional<ports::exit_status>> unclaimed;
  struct sweeping {
    std::function<void(const ports::left_behind&)> waits;
    std::function<void(const ports::swept&)> done;
  };
  std::deque<sweeping> sweeps; ///< the keeper answers them in their order
  bool group_is_fresh = false; ///< none of what lived in it can have been killed by a sweep

  void end(ports::process_id process, const ports::exit_status& how) {
    std::unique_lock lock(mutex);
    auto found = awaited.extract(process);
    if (const auto at = unclaimed.find(process); !found && at != unclaimed.end())
      at->second = how;
    lock.unlock();
    if (found)
      found.mapped()(how);
  }

  void left(const ports::left_behind& what) {
    std::unique_lock lock(mutex);
    if (sweeps.empty())
      return;
    const auto tell = sweeps.front().waits;
    lock.unlock();
    tell(what);
  }

  void swept(const ports::swept& what) {
    std::unique_lock lock(mutex);
    if (sweeps.empty())
      return;
    const auto over = std::move(sweeps.front());
    sweeps.pop_front();
    lock.unlock();
    no_sweep.notify_all();
    over.done(what);
  }
};

kept_process_host::kept_process_host(os::io_thread& io, os::io_thread& slow, keeper_client& keeper,
                                     os::process_host_options options)
    : io_(io), slow_(slow), keeper_(keeper), options_(std::move(options)),
      ends_(std::make_shared<ends>()), grouped_(keeper.group().has_value()) {
  keeper_.listen(io, {[to = ends_](auto process, const auto& how) { to->end(process, how); },
                      [to = ends_](const auto& left) { to->left(left); },
                      [to = ends_](const auto& what) { to->swept(what); }});
  if (grouped_)
    aside([this] { prepare_group(); });
  else
    tell_group();
}

kept_process_host::~kept_process_host() {
  if (!slow_.is_current())
    os::call_on(slow_, [] {}); // prepare_group() knows us
  os::call_on(io_, [to = ends_] {
    const std::lock_guard lock(to->mutex);
    to->awaited.clear();
    to->sweeps.clear();
    to->no_sweep.notify_all();
  });
}

void kept_process_host::expect(ports::process_id process, ended on_end) {
  const std::lock_guard lock(ends_->mutex);
  ends_->awaited.emplace(process, std::move(on_end));
}

/// Called while no start waits for the group.
void kept_process_host::prepare_group() {
  announce_start();
  (void)group();
  keeper_.say<messages::ProcessNotStarted>();
}

/// After a sweep it is another one, see control_group.
int kept_process_host::group() {
  if (!grouped_)
    return -1;
  std::unique_lock lock(ends_->mutex);
  const bool fresh = std::exchange(ends_->group_is_fresh, true);
  lock.unlock();
  if (!fresh)
    group_ = keeper_.group()->make_inner();
  if (!std::exchange(group_tried_, true)) {
    grouped_ = group_ && takes_processes(group_.get());
    tell_group();
  }
  return grouped_ ? group_.get() : -1;
}

void kept_process_host::tell_group() const {
  if (!options_.log)
    return;
  const auto& below = keeper_.group();
  const auto why = below ? "what is started in one is refused or killed" : below.error().what;
  options_.log("processes",
               {log::level::info,
                grouped_ ? "control_group" : "no_control_group",
                grouped_
                    ? fmt::format("workers live in control group {}", below->path())
                    : fmt::format("workers get no control group of their own ({}); what clears its "
                                  "environment is not found when the launcher is killed",
                                  why),
                {}});
}

/// Waits until no sweep is under way: a sweep may kill the group as a whole, with a process that is
/// put into it meanwhile. The keeper answers within the sweep's time and limits::kill_within.
void kept_process_host::announce_start() {
  std::unique_lock lock(ends_->mutex);
  ends_->no_sweep.wait(lock, [this] { return ends_->sweeps.empty(); });
  keeper_.say<messages::ProcessStarting>();
}

void kept_process_host::aside(std::function<void()> job) {
  boost::asio::post(slow_.context(), std::move(job));
}

result<ports::started> kept_process_host::start(const ports::process_spec& spec, ended on_end) {
  if (slow_.is_current())
    return start_here(spec, std::move(on_end));
  return os::call_on(slow_, [this, &spec, &on_end] { return start_here(spec, std::move(on_end)); });
}

result<ports::started> kept_process_host::start_here(const ports::process_spec& spec,
                                                     ended on_end) {
  const auto process = keeper_.next_process();
  announce_start();
  auto child = os::spawn(spec, options_.open_files, group());
  if (!child) {
    keeper_.say<messages::ProcessNotStarted>();
    return tl::make_unexpected(child.error());
  }
  // Before the keeper knows of it, since it tells the end as soon as it does.
  expect(process, std::move(on_end));
  keeper_.say<messages::ProcessStarted>([&](auto b) {
    b.setProcess(process);
    b.setPid(*child);
    b.setLabel(spec.label);
  });
  return ports::started{process, *child};
}

std::vector<ports::survivor> kept_process_host::survivors() {
  std::vector<ports::survivor> found;
  const std::lock_guard lock(ends_->mutex);
  for (const auto& s : keeper_.survivors())
    if (!s.is_store) {
      ends_->unclaimed.emplace(s.process, std::nullopt);
      keeper_.adopted(s.process);
      found.push_back({s.process, s.pid, s.label});
    }
  return found;
}

void kept_process_host::adopt(ports::process_id survivor, ended on_end) {
  const std::lock_guard lock(ends_->mutex);
  const auto known = ends_->unclaimed.extract(survivor);
  if (known && known.mapped())
    return boost::asio::post(io_.context(),
                             [how = *known.mapped(), on_end = std::move(on_end)] { on_end(how); });
  ends_->awaited.emplace(survivor, std::move(on_end));
  keeper_.adopted(survivor);
}

void kept_process_host::signal(ports::process_id process, int number) {
  keeper_.signal(process, number);
}

void kept_process_host::signal_alone(ports::process_id process, int number) {
  keeper_.signal(process, number, true);
}

/// A set of bits in hexadecimal, the last one for signal 1. Of a process that is gone: no.
bool kept_process_host::takes_signal(std::int32_t pid, int number) {
  const auto status =
      read_small_file(fmt::format("/proc/{}/status", pid), limits::process_status_max).value_or("");
  constexpr std::string_view caught = "\nSigCgt:\t";
  const auto at = status.find(caught);
  if (at == std::string::npos)
    return false;
  const auto bits = std::strtoull(status.c_str() + at + caught.size(), nullptr, 16);
  return (bits >> static_cast<unsigned>(number - 1) & 1U) != 0;
}

void kept_process_host::sweep(const ports::sweep_order& order,
                              std::function<void(const ports::left_behind&)> waits,
                              std::function<void(const ports::swept&)> done) {
  const auto us = [](duration d) {
    const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(d).count();
    return static_cast<std::uint64_t>(std::max<std::int64_t>(whole, 0));
  };
  const std::lock_guard lock(ends_->mutex);
  ends_->sweeps.push_back({std::move(waits), std::move(done)});
  ends_->group_is_fresh = false;
  keeper_.say<messages::SweepWanted>([&](auto b) {
    b.setQuietUs(us(order.quiet));
    b.setWithinUs(us(order.within));
  });
}

result<std::uint16_t> kept_process_host::free_port(const std::string& /*address*/) {
  return os::free_port();
}

std::int64_t kept_process_host::unix_time_ms() {
  return os::unix_time_ms();
}

std::optional<std::string> kept_process_host::read_small_file(const std::string& path,
                                                              std::size_t limit) {
  return os::read_small_file(path, limit);
}

std::optional<std::string> kept_process_host::read_end_of_file(const std::string& path,
                                                               std::size_t limit) {
  return os::read_end_of_file(path, limit);
}

} // namespace troupe::launch
