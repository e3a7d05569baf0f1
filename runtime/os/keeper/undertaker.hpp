#pragma once

#include <functional>
#include <string>

#include <sys/types.h>

namespace troupe::os {

struct undertaker_options {
  std::string mark; ///< as in keeper_options
  std::function<void()> tidy_up;
};

/// A process that waits for this one to be killed, and then kills whoever carries the mark: those
/// that had left their parents, their group and their session, and whom no parent-death signal
/// reaches. Nothing is polled until then. What has cleared its environment is not found.
///
/// Answers its pid; 0 if the mark is empty. It must be killed before this process ends otherwise.
pid_t start_undertaker(const undertaker_options& options);

} // namespace troupe::os
