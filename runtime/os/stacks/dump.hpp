#pragma once

#include "diag/stacks/process_stacks.hpp"
#include "runtime/base/time.hpp"
#include "runtime/os/stacks/elf_files.hpp"
#include "runtime/os/stacks/process_facts.hpp"

#include <vector>

namespace troupe::os {

struct dump_options {
  bool python = true;
  bool native = true;
};

struct process_dump {
  process_facts facts;
  diag::process_stacks stacks;
  duration stopped_longest{}; ///< a thread of it, for its native stack
};

/// Reads what other processes are doing, without their help. A file that cannot be read because
/// its server is gone holds up the one that reads: so this is for a process of its own, that can
/// be killed.
class stack_reader {
 public:
  /// All of one process. What cannot be read is named in it; an error only if there is no such
  /// process.
  result<process_dump> dump(pid_t pid, const dump_options& options);

 private:
  elf_files files_;
  network_connections connections_; ///< as they were when first asked for
};

} // namespace troupe::os
