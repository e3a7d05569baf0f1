#pragma once

#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <functional>
#include <vector>

#include <sys/types.h>
#include <sys/user.h>

namespace troupe::os {

/// A thread's registers and the part of its stack in use, both of the same moment.
struct thread_copy {
  pid_t id = 0;
  /// Of a thread that could not be stopped only the place and the stack pointer are known.
  bool is_whole = false;
  user_regs_struct registers{};
  std::uint64_t stack_begin = 0;
  std::vector<char> stack;
  duration stopped_for{}; ///< how long the thread stood still for this
};

/// Up to where memory from this address on may belong to the same stack.
using stack_limit = std::function<std::uint64_t(std::uint64_t)>;

std::uint64_t stack_pointer_of(const user_regs_struct& registers);
std::uint64_t instruction_of(const user_regs_struct& registers);

/// Stops one thread of another process for as long as its registers and its stack are copied, and
/// lets it go on: what is made of them takes far longer, and happens afterwards. A thread that was
/// stopped before (SIGSTOP) is so again, and a signal that came meanwhile is delivered.
///
/// errc::unavailable: it did not stop within
/// `patience`, as one that waits in the kernel for a device does not; it is let go when the calling
/// thread ends. errc::closed: it has ended. errc::refused: the system does not let us.
result<thread_copy> copy_thread(pid_t process, pid_t thread, duration patience,
                                const stack_limit& stack_end);

/// What can be had without stopping it, of a thread that waits in the kernel.
result<thread_copy> copy_waiting_thread(pid_t process, pid_t thread, const stack_limit& stack_end);

} // namespace troupe::os
