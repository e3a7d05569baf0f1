#pragma once

#include "runtime/base/ids.hpp"

#include <cstdint>
#include <string>

/// Where DdpCheckpointer's files are: `<step>/rank_<r>.pt`.
namespace troupe::ckpt::ddp_layout {

inline constexpr const char* name = "ddp";

inline std::string directory(std::uint64_t step) {
  return std::to_string(step);
}

inline std::string shard(global_rank rank) {
  return "rank_" + std::to_string(rank) + ".pt";
}

} // namespace troupe::ckpt::ddp_layout
