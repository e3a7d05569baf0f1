#pragma once

#include "runtime/base/time.hpp"

#include <cstddef>
#include <cstdint>

namespace troupe::limits {

/// From the name of the server to the last byte of its answer.
inline constexpr auto api_call_within = 15s;
inline constexpr std::size_t api_calls_max = 64;
/// Of one program: further ones wait, up to so many.
inline constexpr std::size_t api_calls_at_once = 16;
inline constexpr std::size_t api_calls_waiting_max = 4'096;
/// A list of pods is the largest answer.
inline constexpr std::uint64_t api_answer_max = 16u << 20;
inline constexpr std::uint32_t api_header_max = 64u << 10;
inline constexpr std::size_t api_token_max = 64u << 10;
inline constexpr std::size_t kubeconfig_max = 1u << 20;
inline constexpr std::size_t api_url_max = 1'000;
/// How long the end of a master waits for machines that are being marked, and pods that are
/// deleted.
inline constexpr auto cluster_ends_within = 5s;
/// How long the end of a master waits for what its journal is asked to write.
inline constexpr auto journal_end_within = 5s;

} // namespace troupe::limits
