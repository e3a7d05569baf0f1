#include "runtime/os/keeper/kept_process_host.hpp"

#include "runtime/os/call_on.hpp"
#include "runtime/os/process/spawn.hpp"

#include <deque>
#include <utility>

namespace troupe::os {

using kind = packet::kind;

struct kept_process_host::ends {
  std::mutex mutex;
  std::map<ports::process_id, ended> awaited;
  std::deque<std::function<void(std::size_t)>> sweeps;

  void take(const packet& p) {
    if (p.what == kind::ended)
      end(p.process, {p.signalled, p.number});
    else if (p.what == kind::swept)
      swept(static_cast<std::size_t>(p.number));
  }

  void end(ports::process_id process, const ports::exit_status& how) {
    std::unique_lock lock(mutex);
    auto found = awaited.extract(process);
    lock.unlock();
    if (found)
      found.mapped()(how);
  }

  void swept(std::size_t killed) {
    std::unique_lock lock(mutex);
    if (sweeps.empty())
      return;
    const auto tell = std::move(sweeps.front());
    sweeps.pop_front();
    lock.unlock();
    tell(killed);
  }
};

kept_process_host::kept_process_host(io_thread& io, keeper_client& keeper,
                                     process_host_options options)
    : io_(io), keeper_(keeper), options_(options), ends_(std::make_shared<ends>()),
      spawner_("troupe-spawn") {
  keeper_.listen(io, [to = ends_](const packet& p) { to->take(p); });
}

kept_process_host::~kept_process_host() {
  call_on(io_, [to = ends_] {
    const std::lock_guard lock(to->mutex);
    to->awaited.clear();
    to->sweeps.clear();
  });
}

void kept_process_host::expect(ports::process_id process, ended on_end) {
  const std::lock_guard lock(ends_->mutex);
  ends_->awaited.emplace(process, std::move(on_end));
}

result<ports::started> kept_process_host::start(const ports::process_spec& spec, ended on_end) {
  return call_on(spawner_, [this, &spec, &on_end]() -> result<ports::started> {
    auto p = about(kind::starting, keeper_.next_process());
    keeper_.send(p);
    auto child = spawn(spec, options_.open_files);
    if (!child) {
      p.what = kind::not_started;
      keeper_.send(p);
      return tl::make_unexpected(child.error());
    }
    // Before the keeper knows of it, since it tells the end as soon as it does.
    expect(p.process, std::move(on_end));
    p.what = kind::started;
    p.pid = *child;
    p.label = spec.label;
    keeper_.send(p);
    return ports::started{p.process, *child};
  });
}

std::vector<ports::survivor> kept_process_host::survivors() {
  std::vector<ports::survivor> found;
  for (const auto& s : keeper_.survivors())
    if (!s.is_store) {
      keeper_.send(about(kind::adopted, s.process));
      found.push_back({s.process, s.pid, s.label});
    }
  return found;
}

void kept_process_host::adopt(ports::process_id survivor, ended on_end) {
  expect(survivor, std::move(on_end));
  keeper_.send(about(kind::adopted, survivor));
}

void kept_process_host::signal(ports::process_id process, int number) {
  keeper_.send(about(kind::signal, process, number));
}

void kept_process_host::sweep(std::function<void(std::size_t killed)> done) {
  {
    const std::lock_guard lock(ends_->mutex);
    ends_->sweeps.push_back(std::move(done));
  }
  keeper_.send(about(kind::sweep));
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

} // namespace troupe::os
