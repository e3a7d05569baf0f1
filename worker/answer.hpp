#pragma once

#include "runtime/base/result.hpp"
#include "worker/process_arena.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <string_view>

/// What the handles are.
struct troupe_memory {
  std::shared_ptr<troupe::ckpt::arena_memory> own;
};
struct troupe_arena {
  std::unique_ptr<troupe::ckpt::process_arena> own;
};

/// How the functions of troupe_ckpt.h answer.
namespace troupe::ckpt {

inline void tell(std::string_view what, char* why, std::size_t why_bytes) {
  if (why_bytes == 0)
    return;
  const auto bytes = std::min(what.size(), why_bytes - 1);
  std::memcpy(why, what.data(), bytes);
  why[bytes] = '\0';
}

/// Nothing is thrown into a caller's language.
template<class Do>
int answer(char* why, std::size_t why_bytes, Do&& what) {
  try {
    const result<void> done = what();
    if (done)
      return 0;
    tell(done.error().what, why, why_bytes);
  } catch (const std::exception& e) {
    tell(e.what(), why, why_bytes);
  }
  return -1;
}

/// The answer of functions that say more than yes or no.
template<class Do>
int number(char* why, std::size_t why_bytes, Do&& what) {
  int found = 0;
  const auto done = answer(why, why_bytes, [&]() -> result<void> {
    const result<int> counted = what();
    if (!counted)
      return tl::make_unexpected(counted.error());
    found = *counted;
    return {};
  });
  return done == 0 ? found : -1;
}

inline int finalized(const troupe_arena& arena, std::uint64_t slot, std::uint64_t sequence,
                     std::uint64_t within_ms, purpose what, char* why, std::size_t why_bytes) {
  const auto within = std::chrono::milliseconds(std::min<std::uint64_t>(within_ms, 1u << 30));
  return number(why, why_bytes, [&]() -> result<int> {
    const auto known = arena.own->finalized(slot, sequence, within, what);
    if (!known)
      return tl::make_unexpected(known.error());
    return *known ? 1 : 0;
  });
}

} // namespace troupe::ckpt
