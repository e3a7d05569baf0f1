#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::launch {

/// The page of each local rank in which its training process says how far it is
/// (diag/progress/page.hpp). Made by the keeper, as the memory for checkpoints is: a node
/// supervisor that is started again reads on where its predecessor had been.
///
/// The pages are sealed: a process may write what it likes into its own, but it cannot make it
/// shorter, which would end its reader.
class progress_memory {
 public:
  /// Local ranks beyond these have none, as with memory for checkpoints.
  static constexpr std::uint32_t local_ranks_max = 64;
  /// Of one process of the launcher: the descriptor.
  static constexpr std::uint64_t open_files_per_local_rank = 1;

  /// Fewer local ranks where the system gives no more.
  explicit progress_memory(std::uint32_t local_ranks);

  /// Of each local rank.
  std::vector<int> descriptors() const;

 private:
  class page;
  std::shared_ptr<std::vector<page>> pages_;
};

} // namespace troupe::launch
