#pragma once

#include "ckpt/copy/blocks.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::ckpt {

/// Of arrays as C has them.
inline std::vector<bytes_at> bytes_of(const void* const* storages, const uint64_t* bytes,
                                      size_t count) {
  std::vector<bytes_at> all(count);
  for (std::size_t i = 0; i < count; ++i)
    all[i] = {static_cast<const char*>(storages[i]), bytes[i]};
  return all;
}

} // namespace troupe::ckpt
