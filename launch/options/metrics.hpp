#pragma once

#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"
#include "runtime/ports/transport.hpp"

#include <optional>
#include <string>

namespace troupe::launch {

struct metrics_options {
  /// Nothing: no metrics are served.
  std::optional<ports::endpoint> listen;
  /// After the job's end its result stays readable for so long at most.
  duration linger = 60s;
};

/// What was typed.
struct metrics_arguments {
  std::string listen; ///< "[HOST:]PORT"; without a host every address; empty: nowhere
  double linger = 60; ///< seconds
};

result<metrics_options> derive_metrics(const metrics_arguments& w);

} // namespace troupe::launch
