#pragma once

#include "runtime/os/keeper/control_group.hpp"

#include <functional>
#include <string>

#include <sys/types.h>

namespace troupe::os {

struct undertaker_options {
  std::string mark; ///< as in keeper_options
  /// Those in it are killed as well, and it is removed; may be none.
  const control_group* group = nullptr;
  std::function<void()> tidy_up;
};

/// A process that waits for this one to be killed, and then kills whoever carries the mark: those
/// that had left their parents, their group and their session, and whom no parent-death signal
/// reaches. Nothing is polled until then. Who has cleared his environment is found in the group
/// only.
///
/// Answers its pid; 0 if there is neither mark nor group. It must be killed before this process
/// ends otherwise.
pid_t start_undertaker(const undertaker_options& options);

} // namespace troupe::os
