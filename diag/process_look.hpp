#pragma once

#include "runtime/base/time.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe::diag {

/// What a thread that does not run waits for, by the system call that it is in.
enum class awaited : std::uint8_t {
  nothing, ///< it runs, or its call is not known
  lock,    ///< a futex: another thread of its process, or none that would ever let it go on
  outside, ///< a socket, a pipe or a timer (poll, recv, sleep): something that goes on elsewhere
  child,   ///< the end of a process (wait4)
  kernel,  ///< any other call, such as read()
};

/// Whose work a thread does, by the functions that it is in.
enum class thread_role : std::uint8_t {
  own,    ///< the script's, or of a library of it: a gauge reader, an upload, whatever it waits for
  pool,   ///< work items of an executor or a pool
  helper, ///< it carries items between a pool or queue and its processes: it waits for all its life
};

/// A thread that executes Python: where it is, and what it has used.
struct thread_look {
  std::int32_t id = 0; ///< the kernel's; the process's own number: the main thread
  duration cpu_time{};
  std::uint64_t stack = 0; ///< hash of its functions, without lines: a loop changes those
  /// It ran, or waited for a processor, which the kernel counts when the wait ends. 0: it does not
  /// tell.
  duration wanted{};
  std::uint64_t position = 0; ///< where its innermost function is: a call of C does not change it
  std::uint64_t io_bytes = 0; ///< by its own read() and write() and their like; 0: not known
  awaited waits = awaited::nothing;
  /// It waits for another thread or a process by Python's means: join(), result(), a condition, a
  /// queue's get(). A lock that its script has taken itself is none of these.
  bool joins = false;
  /// The lock that it waits in is one that other processes can let go of.
  bool shared_lock = false;
  /// …and it goes on after a while by itself: a pause, or a wait that asks again and again.
  bool timed_lock = false;
  thread_role role = thread_role::own;
  /// Its position changed during this look.
  bool runs_on = false;
  bool ready = false; ///< to run: it has a processor, or waits for one
};

/// A child, or one of a child's, that does a part of the process's work: a data loader's worker, a
/// compiler.
struct child_look {
  std::int32_t pid = 0;
  std::string role; ///< "data loader worker 7"; empty: unknown
  char state = 0;
  duration cpu_time{};
  std::uint64_t io_bytes = 0;
  std::vector<thread_look> threads;       ///< as of `process_look`
  std::string place;                      ///< as of `process_look`
  duration wanted{};                      ///< of all its threads, as of `thread_look`
  std::map<std::int32_t, duration> ready; ///< as of `process_look`
  /// The thread of the process that has started it, or its parent; 0: not known.
  std::int32_t started_by = 0;
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
  /// The thread that makes the steps and collectives, as its page says; 0: not known.
  std::int32_t script = 0;
  /// The script has come to its end: Python is being finalized, or the kernel takes it down.
  bool ends = false;
  /// In which all its threads together were ready to run and had no processor, since they began.
  /// A wait counts when it ends.
  duration delayed{};
  /// The threads that are ready to run, and what each has run since it began.
  std::map<std::int32_t, duration> ready;
  /// Its page says that it waits for its data loader. Set by the reader of the page.
  bool waits_for_input = true;
};

} // namespace troupe::diag
