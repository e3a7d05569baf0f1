#pragma once

#include "launch/doctor/finding.hpp"
#include "runtime/base/time.hpp"

#include <functional>
#include <string>
#include <vector>

/// All checks at once: one that hangs delays no other one, and is named.
namespace troupe::launch::doctor {

struct check {
  std::string subject;
  duration within;
  std::function<findings()> examine;
};

/// Each check runs on a thread of its own; `told` gets the findings in the order of the checks, as
/// soon as they are there, on the calling thread. `slow` is called once, with the subject of the
/// first check that is waited for longer than `slow_after`.
///
/// A check that does not end within its time is answered with a warning, and its thread is left
/// behind: the caller ends the process without waiting for it (leave()).
void examine(const std::vector<check>& checks, const std::function<void(const finding&)>& told,
             duration slow_after, const std::function<void(const std::string&)>& slow);

} // namespace troupe::launch::doctor
