#pragma once

#include "runtime/base/fnv1a.hpp"

#include <cstddef>
#include <cstdint>

namespace troupe::worker {

/// Of the members' global ranks, each as four bytes, the lowest first. 0: none are known.
inline std::uint64_t hash_of(const std::uint32_t* members, std::size_t count) {
  if (count == 0)
    return 0;
  fnv1a hash;
  for (std::size_t i = 0; i < count; ++i)
    for (unsigned shift = 0; shift < 32; shift += 8)
      hash.take(static_cast<std::uint8_t>(members[i] >> shift));
  return hash.value();
}

} // namespace troupe::worker
