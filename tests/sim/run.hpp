#pragma once

#include "runtime/base/result.hpp"
#include "tests/sim/plan.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace troupe::sim {

/// What a run is about.
enum class life {
  any,
  storage,     ///< a job that saves all the time, on few nodes, under what checkpoints go through
  two_masters, ///< the same with a rival of its master; nodes and faults are its own
};

struct run_options {
  std::uint64_t seed = 1;
  /// 0: the seed decides, 4 to 16.
  std::uint32_t nodes = 0;
  /// Nothing: the seed makes one.
  std::optional<plan> faults;
  life of = life::any;
  std::function<void(const std::string&)> on_line;
};

struct run_outcome {
  std::uint64_t digest = 0;
  std::size_t lines = 0;
  duration simulated{};
  std::uint32_t nodes = 0;
  std::uint64_t processes = 0;
  std::uint64_t generations = 0;
  bool success = false; ///< of the job
  std::optional<violation> broken;
  std::vector<std::string> last_lines;
};

/// One life of a job under faults: first fate does what the plan says while every checker watches;
/// then all is healed, and within `alive_again_within` the job must have come to an end and nothing
/// may be left of it.
run_outcome run(const run_options& o);

/// Of a run that is over.
run_outcome outcome_of(cluster& c);

inline constexpr auto faults_last = 40s;
/// How long what was healed may still make a master give up.
inline constexpr auto last_consequences = 5s;
/// A node that missed the verdict tries for cluster_options::train_on_within to find its master;
/// the rest is forming and training.
inline constexpr auto alive_again_within = 240s;

} // namespace troupe::sim
