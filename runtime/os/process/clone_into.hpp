#pragma once

#include <cstddef>

#include <sys/types.h>

namespace troupe::os {

/// Whether clone_into() is there: kernels before 5.7 and some sandboxes lack what it needs.
bool can_clone_into();

/// Whose child it becomes. Ours has to be waited for with __WALL and sends no signal when it ends.
enum class child_of { us, our_parent };

/// A child that borrows our memory until it executes a program or ends (as vfork's) and belongs to
/// the control group whose directory is open as `group` from its first moment on. Answers its pid;
/// -1 with errno as clone has it. The stack is aligned to 16 bytes at both ends.
pid_t clone_into(int group, child_of whose, int (*run)(void*), std::byte* stack,
                 std::size_t stack_size, void* argument);

} // namespace troupe::os
