#pragma once

#include "runtime/base/result.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::actors {

/// What DeepSpeed's "elasticity" section says, by its names.
struct elasticity_config {
  enum class rules { v0_1, v0_2 };
  /// What becomes of the least common multiple of the micro batches when it exceeds the cap: up to
  /// the summer of 2026 (0.16.5, say) DeepSpeed kept it as a candidate, since then it drops it.
  /// The older ones also choose the micro batch as if every worker were a data-parallel rank.
  enum class variant { capped, uncapped };

  std::int64_t max_train_batch_size = 2'000;
  std::vector<std::int64_t> micro_batch_sizes{2, 4, 6};
  std::int64_t min_gpus = 1;
  std::int64_t max_gpus = 10'000;
  std::int64_t num_gpus_per_node = 1;
  std::int64_t model_parallel_size = 1;
  bool prefer_larger_batch = true;
  rules version = rules::v0_2;
  variant which = variant::capped;
};

/// The global batch and the data-parallel world sizes that can share it evenly.
struct elastic_batch {
  std::int64_t batch = 0;
  std::vector<std::int64_t> counts; ///< ascending
  /// 0.2 only: the micro batch for the world asked about; nothing if none divides its share.
  std::optional<std::int64_t> micro;
};

/// Which world sizes keep the global batch, and with it convergence, as DeepSpeed computes them:
/// batch = micro batch × accumulation steps × data-parallel size. Pure.
///
/// 0.1: candidates for the batch are multiples of each micro batch and of their least common
/// multiple by highly composite numbers; the one that most worlds can share wins. 0.2: the same
/// over nodes, and a world that is not among the winner's gets the largest batch of its own.
class elasticity {
 public:
  /// The error names what contradicts itself.
  static result<elasticity> make(elasticity_config config);

  /// For a job of so many workers in all (0.1 does not ask).
  elastic_batch batch_for(std::uint64_t workers) const;

  /// Whether DeepSpeed would start with so many workers.
  bool allows(std::uint64_t workers) const;

 private:
  explicit elasticity(elasticity_config config);
  elastic_batch fallback_for(std::uint64_t workers) const;

  elasticity_config config_;
  elastic_batch regular_; ///< the same for every world
};

} // namespace troupe::actors
