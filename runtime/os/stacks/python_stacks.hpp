#pragma once

#include "runtime/base/result.hpp"
#include "runtime/os/stacks/elf_files.hpp"
#include "runtime/os/stacks/process_memory.hpp"
#include "runtime/os/stacks/python_walk_core.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::os {

/// The Python of another process, found once and read as often as wanted.
///
/// A process that stands still is the one whose stacks are wanted, and often one that cannot help:
/// a thread in C holds the interpreter's lock, a signal handler in Python never runs. So its
/// memory is read from outside, while it runs: it is neither stopped nor asked, and needs to have
/// prepared nothing. What reads must be allowed to trace it.
class python_stacks {
 public:
  /// errc::absent: no Python runs in it. errc::refused: the system does not let us; one line with
  /// what does. errc::invalid: a version that is not known.
  static result<python_stacks> of(pid_t pid, const std::vector<mapping>& mappings,
                                  elf_files& files);

  const std::string& version() const { return version_; } ///< "3.11.2"
  /// As they are now. `native_id` of each thread is the kernel's, as far as it can be told.
  python_walk sample();

 private:
  explicit python_stacks(pid_t pid) : pid_(pid), memory_(pid) {}

  void name_threads(std::vector<python_thread>& threads);

  pid_t pid_;
  process_memory memory_;
  std::uint64_t runtime_ = 0;
  python_layout layout_;
  std::string version_;
};

} // namespace troupe::os
