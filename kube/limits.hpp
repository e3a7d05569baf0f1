#pragma once

#include "runtime/base/time.hpp"

#include <cstddef>

namespace troupe::limits {

/// Machines that wait to be marked; further ones are told and not marked.
inline constexpr std::size_t marks_waiting_max = 256;
/// Of one address; those that have ended are among them.
inline constexpr std::size_t pods_of_address_max = 100;
/// Attempts for one machine. With the waits between them an API server may be away for minutes.
inline constexpr int mark_attempts_max = 12;
inline constexpr auto mark_again_first = 1s;
inline constexpr auto mark_again_most = 60s;
/// What a server may ask for by Retry-After.
inline constexpr auto mark_retry_after_most = 120s;

} // namespace troupe::limits
