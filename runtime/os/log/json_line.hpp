#pragma once

#include "runtime/base/log.hpp"
#include "runtime/base/time.hpp"

#include <chrono>
#include <string>

namespace troupe::os {

/// One event as one line of JSON, without the line's end:
/// {"time":"2026-01-31T12:00:00.000123Z","monotonic_ns":42,"level":"notice","component":"master/recovery",
///  "event":"restarting","text":"…","fields":{"generation":3}}
/// `monotonic_ns` orders events of one process and measures between them; it counts from no
/// meaningful point.
std::string json_line(const std::string& component, const log::event& event,
                      std::chrono::system_clock::time_point wall, instant monotonic);

} // namespace troupe::os
