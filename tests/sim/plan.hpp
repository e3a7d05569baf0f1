#pragma once

#include "runtime/base/random.hpp"
#include "runtime/base/result.hpp"
#include "tests/sim/cluster.hpp"

#include <string>
#include <vector>

namespace troupe::sim {

/// What goes wrong in a run, as data. One fault per line, in the words of faults.hpp:
///
///     at 3s node 2 dies
///     at 4s..9s worker ? exits 7          at a time the seed decides
///     at 4s..9s chance 0.3 link ? drops   in this share of the runs
///
/// Lines that begin with # are prose.
struct plan {
  struct step {
    duration from{};
    duration to{};
    double chance = 1;
    std::vector<std::string> words;
  };

  std::string name;
  std::vector<step> steps;

  static result<plan> parse(const std::string& name, const std::string& text);
  /// `name` is that of a file in tests/sim/plans, without its ending.
  static result<plan> load(const std::string& directory, const std::string& name);
  /// Up to some dozens of faults of all kinds within `span`; few of the kinds that charge restarts.
  static plan random(random_source& random, duration span);

  /// Puts every step on the agenda, counted from now.
  void schedule(cluster& c) const;
};

} // namespace troupe::sim
