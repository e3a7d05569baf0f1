#pragma once

#include "runtime/base/log.hpp"
#include "runtime/base/time.hpp"

#include <chrono>
#include <string>

namespace troupe::os {

/// Which process a line is from: files of many nodes and jobs end up in one place.
struct log_origin {
  std::string job, node; ///< empty: not known, and not told
};

/// One event as one line of JSON, without the line's end:
/// {"time":"2026-01-31T12:00:00.000123Z","level":"notice","job":"run-7","node":"node-0",
///  "component":"master/recovery","event":"restarting","text":"…","fields":{"generation":3},
///  "monotonic_ns":42}
/// `level` is one of syslog's words: debug, info, notice, warning, error. `monotonic_ns` orders
/// events of one process and measures between them; it counts from no meaningful point.
std::string json_line(const log_origin& origin, const std::string& component,
                      const log::event& event, std::chrono::system_clock::time_point wall,
                      instant monotonic);

} // namespace troupe::os
