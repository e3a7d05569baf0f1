#pragma once

#include "diag/stacks/process_stacks.hpp"
#include "runtime/os/stacks/memory_port.hpp"
#include "runtime/os/stacks/python_layout_core.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::os {

/// A thread that runs Python, or has.
struct python_thread {
  std::uint64_t handle = 0;    ///< pthread_self()
  std::uint64_t native_id = 0; ///< gettid(); 0: this version does not note it
  std::vector<diag::stack_frame> frames;
  bool holds_lock = false;
  /// If it is a process of PyTorch's data loader: the worker's number in it.
  std::optional<std::uint64_t> loader_worker;
  bool is_loader = false;
  /// Where in its code the innermost frame is: a loop within one line changes it, a call of C that
  /// lasts does not. 0: not known.
  std::uint64_t position = 0;
  std::string missing; ///< one line; empty: the stack is whole
};

struct python_walk {
  std::vector<python_thread> threads;
  std::vector<std::string> missing;
  bool is_ending = false; ///< the interpreter is being finalized
};

/// The Python stacks of all threads of all interpreters of a runtime, from its memory.
///
/// The owner of the memory goes on meanwhile, and may be anything: each structure is taken for what
/// it should be only after its type says so, each list ends where its bound is. A thread that
/// changed while it was read is read again; after the last try what was seen stays, and `missing`
/// says so.
python_walk walk_python(memory_port& memory, std::uint64_t runtime, const python_layout& layout);

} // namespace troupe::os
