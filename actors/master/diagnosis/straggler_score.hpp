#pragma once

#include "actors/master/diagnosis/diagnosis_policy.hpp"
#include "actors/master/diagnosis/sentence.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::actors {

/// Which rank is alive and slow: its time in a step outside of collectives against that of the
/// others, and against its own past.
///
/// Steps of different length are usual, so a rank must stand out from what the others and it itself
/// scatter by, in reports that follow each other.
class straggler_score {
 public:
  struct sample {
    std::uint32_t rank = 0;
    duration busy{};
    duration usual{};
    std::uint32_t steps = 0;
    duration within{};
    bool pipelined = false; ///< sends and receives: stages differ
  };
  struct change {
    bool begins = false; ///< else it is over
    slow_rank what;
  };

  void world(std::uint32_t size);
  /// Nothing for most samples.
  std::optional<change> add(const diagnosis_policy& policy, instant now, const sample& s);
  std::size_t slow_ranks() const { return slow_; }

 private:
  struct of_rank {
    double busy = 0; ///< seconds, newest; 0: unknown
    double mean = 0; ///< in its past, and the mean square of the distance from it
    double square = 0;
    double over_sum = 0; ///< of the reports in a row: usual after all, if they stay few
    std::uint32_t learnt = 0;
    std::uint32_t over = 0; ///< reports in a row
    std::uint32_t under = 0;
    std::uint64_t over_steps = 0;
    duration over_for{};
    bool slow = false;
    std::optional<instant> told;
  };
  struct others {
    double median = 0;
    double scatter = 0;
  };
  others others_than(std::uint32_t rank, instant now);
  static void learn(of_rank& r, double busy);

  std::vector<of_rank> ranks_;
  std::size_t slow_ = 0;
  /// Of very many ranks, whose median a single one does not change: not made anew for each report.
  others all_;
  std::optional<instant> all_at_;
};

} // namespace troupe::actors
