#pragma once

#include "runtime/base/ids.hpp"
#include "runtime/os/memory/bell.hpp"
#include "runtime/os/memory/shared_memory.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::launch {

/// Memory in which workers keep images of their state (ckpt/arena): made by the keeper, empty,
/// before there is any other process, and inherited by all that come. So it outlives every worker
/// and every node supervisor, and is gone with the launcher.
class checkpoint_memory {
 public:
  /// Local ranks beyond these have none: each takes nine descriptors, and a launcher often may have
  /// 1,024.
  static constexpr std::uint32_t local_ranks_max = 64;

  explicit checkpoint_memory(std::uint32_t local_ranks);

  /// Of each local rank, as ckpt/c/troupe_ckpt.h wants them. Fewer local ranks where the system
  /// gives no more.
  std::vector<std::vector<int>> descriptors() const;

 private:
  using arena = std::vector<os::shared_memory>;
  std::shared_ptr<std::vector<arena>> arenas_;
  std::shared_ptr<os::bell> saver_; ///< for all local ranks; the node's saver hears it
};

} // namespace troupe::launch
