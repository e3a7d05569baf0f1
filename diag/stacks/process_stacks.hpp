#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// What one training process was doing at one moment: the stacks of all its threads.
///
/// Without it every reader of stacks (our own, py-spy's, xpu_timer's files) would be merged by code
/// of its own. All of them become this, and everything behind it knows only this.
namespace troupe::diag {

struct stack_frame {
  std::string function; ///< demangled; empty: unknown
  std::string source;   ///< file of the source, else the shared object; empty: unknown
  std::uint32_t line = 0;

  friend bool operator==(const stack_frame& a, const stack_frame& b) {
    return a.line == b.line && a.function == b.function && a.source == b.source;
  }
};

/// The function of the frame between a handler and what its signal has interrupted, as debuggers
/// name it.
inline constexpr auto signal_frame = "<signal handler called>";

struct thread_stacks {
  std::uint64_t id = 0; ///< the kernel's thread id; 0: unknown
  std::string name;     ///< the kernel's comm, at most 15 bytes
  char state = '?';     ///< of /proc/PID/stat: R, S, D, T, t, Z, …
  /// Innermost frame first. Empty if there are none, or for the reason in `missing`.
  std::vector<stack_frame> native;
  std::vector<stack_frame> python;
  bool holds_gil = false;
  std::string missing; ///< one line for people: what could not be read, and why
  /// Where in the kernel it waits: "futex_do_wait (futex)"; empty: it runs, or that is not known.
  std::string waits_in;
};

/// What several looks at a process, some time apart, tell.
enum class motion : std::uint8_t {
  unknown, ///< it was not looked at so, or what it executes could not be seen
  moves,   ///< a stack changed, or bytes were read or written
  sleeps,  ///< nothing changed, and it used no processor
  spins,   ///< it used a processor, always in the same functions
  stopped, ///< by a signal or a debugger
  works,   ///< it is in one call that may take long: a computation in C, an answer, a child
  starves, ///< it is ready to run, and other processes have the processors
  ends,    ///< its script is over, and the interpreter or the process is being closed
  awaits,  ///< it sleeps until another thread or process lets it go on, and one may be about to
};

struct process_stacks {
  std::uint32_t rank = 0;
  std::uint32_t world_size = 0;
  std::uint64_t pid = 0;
  /// Empty for the training process itself; else what the child is for: "data loader worker 7".
  std::string role;
  std::string python_version;         ///< "3.11.2"; empty: no Python was found in the process
  std::vector<thread_stacks> threads; ///< the main thread first
  std::vector<std::string> missing;   ///< as above, of the process as a whole
  /// What the kernel says of it, one line each: "the file system of /data is full".
  std::vector<std::string> facts;
  motion moves = motion::unknown;
};

} // namespace troupe::diag
