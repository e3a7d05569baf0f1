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
///     at 4s after Stop 2ms link 1 drops   up to 2 ms behind the first Stop from then on
///
/// The last hits what lasts some milliseconds, such as the forming of a generation, which a time
/// alone does not. The word is the kind of a message between nodes and master, or of a record.
///
/// Lines that begin with # are prose.
struct plan {
  struct step {
    duration from{};
    duration to{};
    double chance = 1;
    std::string after; ///< a kind of message or record; empty: no such condition
    duration behind{}; ///< that message, at most
    std::vector<std::string> words;
  };

  std::string name;
  std::vector<step> steps;

  static result<plan> parse(const std::string& name, const std::string& text);
  /// `name` is that of a file in tests/sim/plans, without its ending.
  static result<plan> load(const std::string& directory, const std::string& name);
  /// Up to some dozens of faults of all kinds within `span`; few of the kinds that cost restarts.
  /// `of_storage`: of those that checkpoints have to get through, and more of them.
  static plan random(random_source& random, duration span, std::uint64_t nodes,
                     bool of_storage = false);

  /// Puts every step on the agenda, counted from now; what would happen after `lasts` does not.
  void schedule(cluster& c, duration lasts) const;
};

} // namespace troupe::sim
