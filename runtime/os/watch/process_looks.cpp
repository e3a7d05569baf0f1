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

template<std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// A thread that has nothing to do waits in one of these.
bool says_nothing(std::string_view syscall) {
  constexpr std::array<std::string_view, 6> idle{"futex",  "poll",       "ppoll",
                                                 "select", "epoll_wait", "epoll_pwait"};
  return syscall.empty() || is_one_of(syscall, idle);
}

diag::awaited awaited_in(const thread_facts& t) {
  constexpr std::array<std::string_view, 3> locks{"futex", "futex_waitv", "futex_wait"};
  constexpr std::array<std::string_view, 21> outside{
      "poll",           "ppoll",        "select",  "pselect6", "epoll_wait", "epoll_pwait",
      "epoll_pwait2",   "recvfrom",     "recvmsg", "recvmmsg", "sendto",     "sendmsg",
      "sendmmsg",       "accept",       "accept4", "connect",  "nanosleep",  "clock_nanosleep",
      "io_uring_enter", "io_getevents", "flock"};
  constexpr std::array<std::string_view, 2> children{"wait4", "waitid"};
  if (t.syscall.empty())
    return diag::awaited::nothing;
  if (is_one_of(t.syscall, locks))
    return diag::awaited::lock;
  if (is_one_of(t.syscall, outside))
    return diag::awaited::outside;
  return is_one_of(t.syscall, children) ? diag::awaited::child : diag::awaited::kernel;
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

/// The innermost functions are those by which Python waits for another thread or process.
bool joins_a_thread(const std::vector<diag::stack_frame>& frames) {
  constexpr std::array<std::string_view, 2> files{"/threading.py", "/queue.py"};
  constexpr std::array<std::string_view, 2> packages{"/concurrent/futures/", "/multiprocessing/"};
  constexpr std::size_t looked_at = 2;
  const auto last =
      frames.begin() + static_cast<std::ptrdiff_t>(std::min(frames.size(), looked_at));
  return std::any_of(frames.begin(), last, [&](const diag::stack_frame& f) {
    return std::any_of(files.begin(), files.end(),
                       [&](std::string_view file) { return ends_with(f.source, file); }) ||
           std::any_of(packages.begin(), packages.end(), [&](std::string_view package) {
             return f.source.find(package) != std::string::npos;
           });
  });
}

/// A function of a library, by the start of its name, and the role of a thread in it.
struct known_function {
  std::string_view file, function;
  diag::thread_role role;
};

/// The innermost one that is known decides: a worker of a fork server was in the server's loop
/// before, and is further in than that.
diag::thread_role role_of(const std::vector<diag::stack_frame>& frames) {
  using role = diag::thread_role;
  static constexpr std::array<known_function, 12> known{{
      {"/concurrent/futures/thread.py", "", role::pool},
      {"/concurrent/futures/process.py", "_process_", role::pool},
      {"/concurrent/futures/process.py", "", role::helper},
      {"/multiprocessing/pool.py", "worker", role::pool},
      {"/multiprocessing/pool.py", "mapstar", role::pool},
      {"/multiprocessing/pool.py", "starmapstar", role::pool},
      {"/multiprocessing/pool.py", "", role::helper},
      {"/multiprocessing/queues.py", "", role::helper},
      {"/multiprocessing/managers.py", "", role::helper},
      {"/multiprocessing/resource_sharer.py", "", role::helper},
      {"/multiprocessing/forkserver.py", "main", role::helper},
      {"/torch/utils/data/_utils/pin_memory.py", "", role::helper},
  }};
  for (const auto& f : frames) {
    if (f.function == "_serve_one")
      break;
    for (const auto& k : known)
      if (ends_with(f.source, k.file) && f.function.rfind(k.function, 0) == 0)
        return k.role;
  }
  return role::own;
}

/// While a script runs, it is the outermost function of the main thread. What Python calls after
/// it (functions that were given to atexit, the wait for threads) has none around it.
bool is_after_the_script(const std::vector<diag::stack_frame>& frames) {
  constexpr std::array<std::string_view, 3> starts{"<module>", "_run_module_as_main",
                                                   "_run_module_code"};
  return !frames.empty() && !is_one_of(frames.back().function, starts);
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
  // A thread that runs is seen twice: a short loop may be met at the same place by chance.
  const bool any_runs = std::any_of(facts.threads.begin(), facts.threads.end(), [&](auto& t) {
    return t.state == 'R' && thread_with(s.python, t.id);
  });
  const auto again = any_runs ? k.python->sample() : python_walk{};
  for (const auto& t : facts.threads)
    if (const auto* python = thread_with(s.python, t.id)) {
      const auto* later = thread_with(again, t.id);
      // Gradients are computed for the thread that waits for them, as by any native thread.
      if (t.name.rfind("pt_autograd", 0) == 0)
        continue;
      diag::thread_look look{t.id, t.cpu, hash_of(python->frames), t.wanted};
      look.position = python->position;
      look.io_bytes = t.io;
      look.waits = awaited_in(t);
      look.joins = joins_a_thread(python->frames);
      look.shared_lock = t.shared_lock;
      look.timed_lock = t.timed_lock;
      look.role = role_of(python->frames);
      look.ready = t.state == 'R';
      look.runs_on =
          later && later->position != python->position && hash_of(later->frames) == look.stack;
      s.threads.push_back(look);
    }
  if (!facts.threads.empty()) {
    const auto* python = thread_with(s.python, facts.pid);
    s.ends = s.python.is_ending ||
             (python && python->missing.empty() && is_after_the_script(python->frames));
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
  for (const auto& t : facts.threads) {
    c.wanted += t.wanted;
    if (t.state == 'R')
      c.ready.emplace(t.id, t.cpu);
  }
  c.threads = std::move(s.threads);
  c.place = std::move(s.place);
  for (const auto& t : s.python.threads)
    if (t.is_loader)
      c.role = t.loader_worker ? fmt::format("data loader worker {}", *t.loader_worker)
                               : "data loader worker";
  return c;
}

/// Those nearest to the process first. A grandchild is that thread's which has started its parent.
void process_looks::look_at_children(diag::process_look& look, const process_facts& of) {
  std::vector<std::pair<pid_t, pid_t>> children(of.started_by.begin(), of.started_by.end());
  for (std::size_t i = 0; i < children.size() && look.children.size() < children_max; ++i) {
    const auto [pid, started_by] = children[i];
    const auto facts = facts_of(pid, connections_);
    if (!facts)
      continue;
    add_full(look.evidence, *facts);
    look.children.push_back(child(*facts, look.pid));
    look.children.back().started_by = started_by;
    for (const auto grandchild : facts->children)
      children.emplace_back(grandchild, started_by);
  }
}

std::optional<diag::process_look> process_looks::at(std::uint32_t local_rank, pid_t pid,
                                                    pid_t script) {
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
  look.script = script;
  look.ends = s.ends || facts->exits;
  for (const auto& t : facts->threads) {
    look.delayed += std::max(duration::zero(), t.wanted - t.cpu);
    if (t.state == 'R')
      look.ready.emplace(t.id, t.cpu);
  }
  add_full(look.evidence, *facts);
  look_at_children(look, *facts);
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
