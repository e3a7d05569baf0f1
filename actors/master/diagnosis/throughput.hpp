#pragma once

#include "runtime/base/time.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace troupe::actors {

/// How fast worlds of different sizes train, and whether a larger one does less than a smaller one
/// did.
///
/// Each rank is taken to do as much in a step whatever the world's size, as with a batch for each
/// device: a world does nodes × steps. Where the batch is that of the world, what is told here
/// holds all the more. All ranks make the same steps, so those of one rank are enough.
class throughput {
 public:
  struct speed {
    std::uint32_t nodes = 0;
    double steps = 0; ///< in a second
    double node_steps() const { return nodes * steps; }
  };
  struct comparison {
    speed now;
    speed smaller; ///< did the most of those that were measured
  };

  /// A new one; 0: none runs.
  void world(std::uint32_t nodes);
  /// How many steps a rank of it has made by now. Once for each world: it does less than a smaller
  /// one did, by more than speeds scatter.
  std::optional<comparison> add(instant now, std::uint64_t steps);
  /// Of the world that runs, once it was measured.
  std::optional<speed> measured() const;

 private:
  struct since {
    instant at;
    std::uint64_t steps = 0;
  };

  std::optional<comparison> compare() const;

  std::uint32_t nodes_ = 0;
  std::optional<since> window_;
  bool is_warm_ = false;
  std::uint32_t windows_ = 0;
  bool told_ = false;
  /// By nodes, of the newest world of that size. Bounded by limits::speeds_known_max.
  std::map<std::uint32_t, double> best_;
};

std::string comparison_in_words(const throughput::comparison& c);

} // namespace troupe::actors
