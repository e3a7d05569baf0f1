#include "runtime/os/watch/process_looks.hpp"

#include "runtime/base/fnv1a.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace troupe::os {

namespace {

std::string_view base_name(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);
}

/// What any thread that has nothing to do waits in.
bool says_nothing(std::string_view syscall) {
  constexpr std::array<std::string_view, 6> idle{"futex",  "poll",       "ppoll",
                                                 "select", "epoll_wait", "epoll_pwait"};
  return syscall.empty() || std::find(idle.begin(), idle.end(), syscall) != idle.end();
}

/// A data loader's worker and its process mostly write to the same file systems.
void add_full(std::vector<std::string>& evidence, const process_facts& facts) {
  for (const auto& place : facts.full) {
    auto line = fmt::format("the file system of {} is full", place);
    if (std::find(evidence.begin(), evidence.end(), line) == evidence.end())
      evidence.push_back(std::move(line));
  }
}

/// By read() and write(), and by send() and recv().
std::uint64_t bytes_of(const process_facts& facts) {
  return (facts.io ? facts.io->read + facts.io->written : 0) + facts.network_bytes;
}

/// Functions and no lines: a loop within one function that goes nowhere changes lines.
std::uint64_t hash_of(const std::vector<diag::stack_frame>& frames) {
  fnv1a hash;
  for (const auto& f : frames) {
    hash.take(f.function);
    hash.take(f.source);
  }
  return hash.value();
}

const python_thread* thread_with(const python_walk& walk, pid_t id) {
  const auto found = std::find_if(walk.threads.begin(), walk.threads.end(), [id](const auto& t) {
    return t.native_id == static_cast<std::uint64_t>(id);
  });
  return found == walk.threads.end() ? nullptr : &*found;
}

} // namespace

std::string place_of(const thread_facts& thread, const std::vector<diag::stack_frame>& python) {
  const bool waits = thread.state == 'S' || thread.state == 'D';
  std::string where;
  if (!python.empty()) {
    const auto& f = python.front();
    where = fmt::format("{}:{} ({})", base_name(f.source), f.line,
                        f.function.empty() ? "??" : f.function);
  }
  if (!waits || says_nothing(thread.syscall))
    return where;
  return where.empty() ? thread.syscall + "()" : fmt::format("{}() at {}", thread.syscall, where);
}

process_looks::known_process& process_looks::known(const process_facts& facts, pid_t of) {
  auto& k = known_[facts.pid];
  if (k.started == facts.started)
    return k;
  k = {};
  k.started = facts.started;
  k.of = of;
  return k;
}

process_looks::seen process_looks::see(const process_facts& facts, pid_t of) {
  auto& k = known(facts, of);
  // A process that has only just been executed has no interpreter yet.
  if (!k.python)
    if (const auto mappings = mappings_of(facts.pid))
      if (auto python = python_stacks::of(facts.pid, *mappings, files_))
        k.python = std::move(*python);
  seen s;
  if (k.python)
    s.python = k.python->sample();
  for (const auto& t : facts.threads)
    if (const auto* python = thread_with(s.python, t.id))
      s.threads.push_back({t.id, t.cpu, hash_of(python->frames), t.wanted});
  if (!facts.threads.empty()) {
    const auto* python = thread_with(s.python, facts.pid);
    s.place =
        place_of(facts.threads.front(), python ? python->frames : std::vector<diag::stack_frame>{});
  }
  return s;
}

diag::child_look process_looks::child(const process_facts& facts, pid_t of) {
  auto s = see(facts, of);
  diag::child_look c;
  c.pid = facts.pid;
  c.state = facts.state;
  c.cpu_time = facts.cpu;
  c.io_bytes = bytes_of(facts);
  for (const auto& t : facts.threads)
    c.wanted += t.wanted;
  c.threads = std::move(s.threads);
  c.place = std::move(s.place);
  for (const auto& t : s.python.threads)
    if (t.is_loader)
      c.role = t.loader_worker ? fmt::format("data loader worker {}", *t.loader_worker)
                               : "data loader worker";
  return c;
}

/// Those nearest to the process first.
void process_looks::look_at_children(diag::process_look& look, std::vector<pid_t> children) {
  for (std::size_t i = 0; i < children.size() && look.children.size() < children_max; ++i) {
    const auto facts = facts_of(children[i], connections_);
    if (!facts)
      continue;
    add_full(look.evidence, *facts);
    look.children.push_back(child(*facts, look.pid));
    children.insert(children.end(), facts->children.begin(), facts->children.end());
  }
}

std::optional<diag::process_look> process_looks::at(std::uint32_t local_rank, pid_t pid) {
  const auto facts = facts_of(pid, connections_);
  if (!facts || facts->state == 'Z')
    return std::nullopt;
  auto s = see(*facts, pid);
  diag::process_look look;
  look.local_rank = local_rank;
  look.pid = pid;
  look.started = facts->started;
  look.state = facts->state;
  look.cpu_time = facts->cpu;
  look.io_bytes = bytes_of(*facts);
  look.traced = facts->tracer != 0;
  look.threads = std::move(s.threads);
  look.place = std::move(s.place);
  add_full(look.evidence, *facts);
  look_at_children(look, facts->children);
  for (const auto& socket : facts->stuck)
    look.slow_peers.push_back(socket.peer);
  return look;
}

void process_looks::keep_only(const std::vector<pid_t>& pids) {
  for (auto k = known_.begin(); k != known_.end();)
    k = std::find(pids.begin(), pids.end(), k->second.of) == pids.end() ? known_.erase(k)
                                                                        : std::next(k);
}

} // namespace troupe::os
