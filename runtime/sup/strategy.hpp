#pragma once

#include "runtime/base/time.hpp"

/// The words in which a tree is written.
namespace troupe::sup {

/// Whom a restart takes along.
enum class strategy {
  one_for_one,  ///< Nobody: the children are independent.
  one_for_all,  ///< Everybody: none is worth anything without the others.
  rest_for_one, ///< Those started after it: each child relies on those before it.
};

/// When a child that ended is started again.
enum class restart {
  permanent, ///< Always: it is a part of the system.
  transient, ///< Unless it ended normally: it has a task that can be completed.
  temporary, ///< Never, and its end concerns nobody else.
};

/// A supervisor gives up, and ends, at the first restart beyond `restarts` within `period`. Its own
/// supervisor then decides.
struct budget {
  unsigned restarts = 0;
  duration period{};
};

/// How long a child may take to end once asked; then it is killed.
struct stop_within {
  duration limit{};
};

const char* to_string(strategy s);
const char* to_string(restart r);

} // namespace troupe::sup
