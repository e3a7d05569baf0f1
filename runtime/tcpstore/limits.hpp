#pragma once

#include "runtime/base/limits.hpp"

/// The bounds of the workers' store. Lengths of keys and values, and keys per request, are torch's
/// own.
namespace troupe::limits {

inline constexpr std::size_t store_key_max = 8u << 10;
inline constexpr std::size_t store_value_max = 8u << 20;
inline constexpr std::size_t store_keys_per_request_max = 128u << 10;
/// One request, and one answer: many values at once (multi_set, multi_get, a list of keys) must
/// fit.
inline constexpr std::size_t store_request_max = 256u << 20;
inline constexpr std::size_t store_answer_max = 256u << 20;
/// Keys, values and queues.
inline constexpr std::size_t store_memory_max = 2u << 30;
/// Requests half received, waiting clients, and answers not yet taken, of all clients together.
inline constexpr std::size_t store_traffic_max = 1u << 30;
/// Answers waiting for a client that does not read; past this its requests wait too.
inline constexpr std::size_t store_answers_pause = 1u << 20;
/// Requests behind one that blocks.
inline constexpr std::size_t store_held_back_max = 1u << 20;
inline constexpr std::size_t store_clients_max = 256u << 10;
/// Read at once, for all clients in turn.
inline constexpr std::size_t store_read_buffer = 256u << 10;
static_assert(store_value_max < store_request_max && store_value_max < store_answer_max);
static_assert(store_request_max < store_traffic_max && store_answer_max < store_traffic_max);
static_assert(store_clients_max > nodes_max);

} // namespace troupe::limits
