#pragma once

#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"
#include "runtime/os/stacks/socket_table_core.hpp"
#include "runtime/os/stacks/socket_traffic.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace troupe::os {

struct thread_facts {
  pid_t id = 0;
  std::string name;
  char state = '?';
  duration cpu{};
  duration wanted{};        ///< it ran or waited for a processor; 0: not known
  std::uint64_t io = 0;     ///< bytes, by its own read() and write() and their like; 0: not known
  std::string waits_in;     ///< the kernel's function (wchan); empty: it runs, or may not be known
  std::string syscall;      ///< the same
  bool shared_lock = false; ///< it waits in a lock that other processes may hold
  bool timed_lock = false;  ///< …for a bounded time
};

struct input_output {
  std::uint64_t read = 0, written = 0;            ///< bytes, by read() and write() and their like
  std::uint64_t from_storage = 0, to_storage = 0; ///< of these, from and to devices
  friend bool operator==(const input_output& a, const input_output& b) {
    return a.read == b.read && a.written == b.written && a.from_storage == b.from_storage &&
           a.to_storage == b.to_storage;
  }
};

/// What the kernel says of a process. It says most of it to everybody, so that there is something
/// to tell where stacks may not be read, and nothing has to be stopped for it.
struct process_facts {
  pid_t pid = 0;
  std::string name;
  char state = '?';
  std::uint64_t started = 0; ///< with the pid, a name for good
  duration cpu{};
  std::optional<input_output> io;
  pid_t tracer = 0; ///< a debugger's
  std::vector<pid_t> children;
  std::map<pid_t, pid_t> started_by; ///< of each child, the thread that has started it
  bool exits = false;                ///< the kernel is taking it down
  std::vector<thread_facts> threads; ///< the main thread first
  std::vector<stuck_socket> stuck;
  std::uint64_t network_bytes = 0; ///< as `socket_traffic` has it
  std::vector<std::string> full;   ///< mount points without room: of its directory, its temporary
                                   ///< files' and of files that it writes
};

/// The connections of a network namespace, asked for once: the kernel goes through all of its
/// table for each answer, which takes milliseconds, and processes of a node mostly share one.
class network_connections {
 public:
  /// Those whose peer is silent.
  const std::vector<stuck_socket>& silent_of(pid_t pid);
  socket_traffic traffic;

 private:
  std::map<std::uint64_t, std::vector<stuck_socket>> by_namespace_;
};

/// errc::absent if there is no such process. What cannot be read is missing.
result<process_facts> facts_of(pid_t pid, network_connections& connections);

/// The part that tells whether it is there still, at a fraction of the cost.
struct process_use {
  duration cpu{};
  std::optional<input_output> io;
  char state = '?';
  std::uint64_t started = 0;
};
result<process_use> use_of(pid_t pid);

} // namespace troupe::os
