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

/// A journal's records in a ConfigMap, which may have a MiB in all. A request has them in base64.
inline constexpr std::size_t config_map_bytes_max = 768u << 10;
/// What has come to such a journal before what says nothing more is dropped: each append sends all
/// of it again.
inline constexpr std::size_t config_map_compact_bytes = 32u << 10;
inline constexpr auto config_map_again_first = 100ms;
inline constexpr auto config_map_again_most = 10s;
inline constexpr auto config_map_retry_after_most = 60s;
/// Conflicts in a row after which the next attempt waits as well.
inline constexpr int config_map_conflicts_max = 3;
/// How long a master that starts waits for an API server that is away.
inline constexpr auto config_map_open_within = 300s;

} // namespace troupe::limits
