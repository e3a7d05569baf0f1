#pragma once

#include <cstddef>

namespace troupe {

#if defined(__has_feature)
#define TROUPE_HAS_FEATURE(name) __has_feature(name)
#else
#define TROUPE_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
    TROUPE_HAS_FEATURE(address_sanitizer) || TROUPE_HAS_FEATURE(thread_sanitizer)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

#undef TROUPE_HAS_FEATURE

/// How often a test of chance plays: as often as it says, or a tenth of that where a sanitizer
/// makes each step many times slower. What a sanitizer finds it finds in the first few rounds.
constexpr std::size_t rounds(std::size_t as_told) {
  return sanitized ? (as_told + 9) / 10 : as_told;
}

} // namespace troupe
