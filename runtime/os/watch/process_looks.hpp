#pragma once

#include "diag/process_look.hpp"
#include "runtime/os/stacks/elf_files.hpp"
#include "runtime/os/stacks/process_facts.hpp"
#include "runtime/os/stacks/python_stacks.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace troupe::os {

/// Looks at processes from outside, again and again: what is found once (their interpreter, its
/// files) is kept for the next look. One thread.
class process_looks {
 public:
  /// A new round: connections are looked at once in each.
  void begin() { connections_ = {}; }
  /// Nothing if there is no such process any more. `script`: the thread that makes its steps; 0:
  /// not known.
  std::optional<diag::process_look> at(std::uint32_t local_rank, pid_t pid, pid_t script = 0);
  /// What is kept of processes that are not among these goes.
  void keep_only(const std::vector<pid_t>& pids);

 private:
  struct known_process {
    std::uint64_t started = 0; ///< with the pid, a name for good
    std::optional<python_stacks> python;
    pid_t of = 0; ///< the process that was asked for
  };
  struct seen {
    python_walk python;
    std::vector<diag::thread_look> threads;
    std::string place;
    bool ends = false; ///< its script is over
  };
  /// With those below them: a compiler is a child of its driver, a loader's worker one of a fork
  /// server.
  static constexpr std::size_t children_max = 64;

  known_process& known(const process_facts& facts, pid_t of);
  seen see(const process_facts& facts, pid_t of);
  void look_at_children(diag::process_look& look, const process_facts& facts);
  diag::child_look child(const process_facts& facts, pid_t of);

  elf_files files_;
  network_connections connections_;
  std::map<pid_t, known_process> known_;
};

/// Where a thread is, for people: "read() at data.py:12 (load)", "train.py:40 (step)", "read()".
std::string place_of(const thread_facts& thread, const std::vector<diag::stack_frame>& python);

} // namespace troupe::os
