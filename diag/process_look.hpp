#pragma once

#include "runtime/base/time.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::diag {

/// A thread that executes Python: where it is, and what it has used.
struct thread_look {
  std::int32_t id = 0; ///< the kernel's; the process's own number: the main thread
  duration cpu_time{};
  std::uint64_t stack = 0; ///< hash of its functions, without lines: a loop changes those
  duration wanted{};       ///< it ran, or waited for a processor; 0: the kernel does not tell
};

/// A child, or one of a child's, that does a part of the process's work: a data loader's worker, a
/// compiler.
struct child_look {
  std::int32_t pid = 0;
  std::string role; ///< "data loader worker 7"; empty: unknown
  char state = 0;
  duration cpu_time{};
  std::uint64_t io_bytes = 0;
  std::vector<thread_look> threads; ///< as of `process_look`
  std::string place;                ///< as of `process_look`
  duration wanted{};                ///< of all its threads, as of `thread_look`
};

/// One look at a process from outside, in bounded time. What could not be read is 0 or empty.
struct process_look {
  std::uint32_t local_rank = 0;
  std::int32_t pid = 0;
  std::uint64_t started = 0; ///< with the pid, a name for good
  char state = 0;            ///< R, S, D, T, t, Z, X of the main thread; T if all are stopped
  duration cpu_time{};       ///< of all threads, since it began
  /// Read and written since it began, and carried by the connections that are open.
  std::uint64_t io_bytes = 0;
  bool traced = false;              ///< TracerPid is not 0
  std::vector<thread_look> threads; ///< none: it has no Python, or that could not be read
  std::string place;                ///< innermost function of the main thread that tells something:
                                    ///< "train.py:42 (load)", "read()"; empty: unknown
  std::vector<child_look> children;
  /// Connections that have been retransmitting, by the peer's address and port.
  std::vector<std::string> slow_peers;
  std::vector<std::string> evidence; ///< further lines for people: a full file system
};

} // namespace troupe::diag
