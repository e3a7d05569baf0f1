#pragma once

#include "runtime/base/restart_budget.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <optional>
#include <string>

/// The words in which a tree is written.
namespace troupe::sup {

/// What the end of one child means for its siblings.
enum class strategy {
  one_for_one,  ///< Nothing: the children are independent.
  one_for_all,  ///< All are restarted: none is worth anything without the others.
  rest_for_one, ///< Those started after it are restarted: each child relies on those before it.
  /// All share one end, and none is restarted: the first child that ends badly ends the supervisor
  /// with its reason; the supervisor ends well once all children have. They start in order, and
  /// stop all at once. (OTP: one_for_all with intensity 0
  /// and auto_shutdown.)
  one_fate,
};

/// When a child that ended is started again.
enum class restart {
  permanent, ///< Always: it is a part of the system.
  transient, ///< Unless it ended normally: it has a task that can be completed.
  temporary, ///< Never, and its end concerns no sibling.
};

/// A supervisor gives up, and ends, at the first restart beyond `restarts` within `period`
/// (`for_life`: in its life). Its own supervisor then decides.
struct budget {
  unsigned restarts = 0;
  duration period{};
};

/// Why a child is asked to end. An order travels down the tree unchanged, so that a leaf knows
/// whether only its supervisor goes down, or its work is to end.
struct stop_order {
  enum class cause {
    shutdown, ///< The tree above ends or is restarted. What the child stands for may outlive it.
    sibling,  ///< One fate: a sibling ended badly, for the reason given.
    asked,    ///< `stop_child` was sent for it, or for a supervisor above it.
  };
  cause because = cause::shutdown;
  std::string reason; ///< For people; empty for a shutdown.
  /// For the child alone; the supervisors pass it on and do not look at it. 0: nothing special.
  std::int32_t detail = 0;
  /// For the child alone: less or more time than usual for what it ends. Its own limit towards its
  /// supervisor is this plus what the child needs itself.
  std::optional<duration> within;
};

/// How long a child may take to end once asked; then it is killed.
struct stop_within {
  duration limit{};
};

const char* to_string(strategy s);
const char* to_string(restart r);

} // namespace troupe::sup
