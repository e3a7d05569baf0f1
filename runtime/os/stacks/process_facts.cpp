#include "runtime/os/stacks/process_facts.hpp"

#include "runtime/os/entries_of.hpp"
#include "runtime/os/stacks/file_systems.hpp"
#include "runtime/os/stacks/kernel_files.hpp"
#include "runtime/os/stacks/syscall_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>

#include <sys/stat.h>
#include <unistd.h>

namespace troupe::os {

namespace {

duration time_of(std::uint64_t ticks) {
  static const auto per_second = std::max(1L, ::sysconf(_SC_CLK_TCK));
  return std::chrono::duration_cast<duration>(
      std::chrono::duration<double>(static_cast<double>(ticks) / static_cast<double>(per_second)));
}

/// The number behind "\nKEY:" of a file of such lines.
std::optional<std::uint64_t> field(const std::string& text, const std::string& key) {
  const auto at = ("\n" + text).find("\n" + key + ":");
  if (at == std::string::npos)
    return std::nullopt;
  return std::strtoull(text.c_str() + at + key.size() + 1, nullptr, 10);
}

std::optional<input_output> io_of(const std::string& directory) {
  const auto text = kernel_text(directory + "/io");
  const auto read = field(text, "rchar"), written = field(text, "wchar"),
             from = field(text, "read_bytes"), to = field(text, "write_bytes");
  if (!read || !written || !from || !to)
    return std::nullopt;
  return input_output{*read, *written, *from, *to};
}

/// With the thread that has started each. A thread that has ended leaves its children to another.
std::map<pid_t, pid_t> children_of(pid_t pid, const std::vector<pid_t>& threads) {
  std::map<pid_t, pid_t> children;
  for (const auto thread : threads) {
    const auto text = kernel_text(fmt::format("/proc/{}/task/{}/children", pid, thread));
    for (const char* at = text.c_str(); children.size() < limits::stacks_children_max;) {
      char* end = nullptr;
      const auto child = std::strtol(at, &end, 10);
      if (end == at)
        break;
      children.emplace(static_cast<pid_t>(child), thread);
      at = end;
    }
  }
  return children;
}

/// Of the kernel's "RAN WAITED SLICES", the first two in nanoseconds.
struct processor_time {
  duration ran{}, waited{};
};
processor_time processor_time_of(const std::string& schedstat) {
  const auto of = [](std::uint64_t ns) {
    return std::chrono::duration_cast<duration>(std::chrono::nanoseconds(ns));
  };
  char* end = nullptr;
  const auto ran = std::strtoull(schedstat.c_str(), &end, 10);
  return {of(ran), of(std::strtoull(end, nullptr, 10))};
}

/// Of futex(address, operation, value, time, …). The C library asks for a lock within its process
/// wherever it may: one of multiprocessing is between processes, and so is the wait for a thread's
/// end.
void take_lock(thread_facts& t, const char* arguments) {
  constexpr unsigned long long within_process = 128; // FUTEX_PRIVATE_FLAG
  std::array<unsigned long long, 4> words{};
  for (auto& word : words) {
    char* end = nullptr;
    word = std::strtoull(arguments, &end, 16);
    if (end == arguments)
      return;
    arguments = end;
  }
  t.shared_lock = (words[1] & within_process) == 0;
  t.timed_lock = words[3] != 0;
}

std::optional<thread_facts> thread_of(pid_t pid, pid_t id) {
  const auto directory = fmt::format("/proc/{}/task/{}", pid, id);
  const auto stat = stat_of(directory);
  if (!stat)
    return std::nullopt;
  thread_facts t{id, stat->name, stat->state, time_of(stat->cpu_ticks), {}, 0, {},
                 {}, false,      false};
  // Finer than ticks, where the kernel keeps it.
  const auto time = processor_time_of(first_line_of(directory + "/schedstat"));
  if (time.ran > duration::zero())
    t.cpu = time.ran;
  t.wanted = time.ran + time.waited;
  if (const auto io = io_of(directory))
    t.io = io->read + io->written + io->from_storage + io->to_storage;
  if (stat->state == 'R')
    return t;
  const auto waits = first_line_of(directory + "/wchan");
  if (waits != "0")
    t.waits_in = waits;
  const auto call = first_line_of(directory + "/syscall");
  char* end = nullptr;
  const auto number = std::strtol(call.c_str(), &end, 10);
  if (end != call.c_str() && number >= 0)
    t.syscall = syscall_name(number);
  if (t.syscall == "futex")
    take_lock(t, end);
  return t;
}

/// Of its open sockets, those that wait for their peer.
std::vector<stuck_socket> stuck_of(pid_t pid, const std::set<std::uint64_t>& open_sockets,
                                   network_connections& connections) {
  std::vector<stuck_socket> stuck;
  if (!open_sockets.empty())
    for (const auto& s : connections.silent_of(pid))
      if (open_sockets.count(s.inode) != 0)
        stuck.push_back(s);
  return stuck;
}

} // namespace

const std::vector<stuck_socket>& network_connections::silent_of(pid_t pid) {
  struct stat file {};
  const bool is_known = ::stat(fmt::format("/proc/{}/ns/net", pid).c_str(), &file) == 0;
  auto [at, is_new] = by_namespace_.try_emplace(is_known ? file.st_ino : 0);
  if (is_new || !is_known) {
    at->second.clear();
    for (const auto* family : {"tcp", "tcp6"})
      for (auto& s : stuck_sockets(kernel_text(fmt::format("/proc/{}/net/{}", pid, family),
                                               limits::stacks_sockets_bytes_max)))
        at->second.push_back(std::move(s));
  }
  return at->second;
}

result<process_facts> facts_of(pid_t pid, network_connections& connections) {
  const auto directory = fmt::format("/proc/{}", pid);
  const auto stat = pid > 0 ? stat_of(directory) : std::nullopt;
  if (!stat)
    return failure(errc::absent, fmt::format("there is no process {}", pid));
  process_facts f;
  f.pid = pid;
  f.name = stat->name;
  f.state = stat->state;
  f.started = stat->started;
  f.cpu = time_of(stat->cpu_ticks);
  f.exits = stat->exits;
  f.io = io_of(directory);
  f.tracer = static_cast<pid_t>(field(kernel_text(directory + "/status"), "TracerPid").value_or(0));
  const auto threads = threads_of(pid);
  f.started_by = children_of(pid, threads);
  for (const auto& [child, thread] : f.started_by)
    f.children.push_back(child);
  for (const auto id : threads)
    if (auto t = thread_of(pid, id))
      f.threads.push_back(std::move(*t));
  const auto open = open_files_of(pid);
  f.stuck = stuck_of(pid, open.sockets, connections);
  f.network_bytes = connections.traffic.of(pid, open.sockets);
  f.full = full_file_systems(pid, open.written);
  return f;
}

result<process_use> use_of(pid_t pid) {
  const auto directory = fmt::format("/proc/{}", pid);
  const auto stat = stat_of(directory);
  if (!stat)
    return failure(errc::absent, fmt::format("there is no process {}", pid));
  return process_use{time_of(stat->cpu_ticks), io_of(directory), stat->state, stat->started};
}

} // namespace troupe::os
