#pragma once

#include "runtime/base/time.hpp"

#include <cstddef>
#include <cstdint>

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

/// Objects of one answer to a list.
inline constexpr std::size_t page_of_list = 500;
/// Objects of one collection; further ones are told once and not followed.
inline constexpr std::size_t objects_followed_max = 50'000;
inline constexpr auto watch_again_first = 500ms;
inline constexpr auto watch_again_most = 30s;
/// A server ends a watch after a time that is asked for: this much, and up to twice as much.
inline constexpr auto watch_for = 240s;
/// One that does not end it in time is taken for gone.
inline constexpr auto watch_ends_late = 30s;
/// A watch that ended sooner is opened again after a wait.
inline constexpr auto watch_least = 2s;

/// Nodes of one job.
inline constexpr std::uint32_t job_nodes_max = 10'000;
/// What a job may allow for each of its pods.
inline constexpr std::uint32_t pod_restarts_max = 100'000;

/// Others may take a lease that was not renewed for so long; its holder gives it up before.
inline constexpr duration lease_lasts = 15s;
inline constexpr duration lease_renewed_within = 10s;
inline constexpr duration lease_renewed_every = 3s;
inline constexpr duration lease_again = 2s;

} // namespace troupe::limits
