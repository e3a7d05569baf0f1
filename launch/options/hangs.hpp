#pragma once

#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"

#include <map>
#include <optional>
#include <string>

/// What is done about ranks that stand still. The master decides; each node watches its own ranks.
namespace troupe::launch {

enum class hang_action {
  off,    ///< no rank is watched
  tell,   ///< a line, and the stacks of all ranks as a picture
  notify, ///< the same, and a command is run on the machine of the master
  act,    ///< the same, and the rank that keeps the others waiting is ended
};

struct hang_options {
  hang_action action = hang_action::tell;
  /// A rank that has stood still for so long hangs. Nothing: learnt from the steps of each.
  std::optional<duration> timeout;
  /// Run by sh, with what was found in its environment; empty: none.
  std::string command;
  /// Where each dump of this node's ranks leaves a file for each, as xpu_timer does; empty:
  /// nowhere.
  std::string dumps;
};

/// What was typed.
struct hang_arguments {
  std::string action = "tell", command;
  double timeout = 0; ///< seconds; 0: learnt
};

/// `environment`: XPU_TIMER_TIMELINE_PATH.
result<hang_options> derive_hangs(const hang_arguments& w,
                                  const std::map<std::string, std::string>& environment);

} // namespace troupe::launch
