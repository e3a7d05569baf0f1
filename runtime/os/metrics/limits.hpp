#pragma once

#include "runtime/base/time.hpp"

#include <cstddef>

namespace troupe::limits {

/// A monitoring system needs one connection, and may keep it.
inline constexpr std::size_t metrics_connections_max = 16;
/// Method, path and headers of a request; a body is refused.
inline constexpr std::size_t metrics_request_max = 8u << 10;
/// From a request's first byte to the last of its answer, and between two requests.
inline constexpr auto metrics_request_within = 10s;
inline constexpr auto metrics_idle_within = 120s;

} // namespace troupe::limits
