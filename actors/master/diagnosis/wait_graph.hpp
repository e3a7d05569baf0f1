#pragma once

#include "actors/master/diagnosis/rank_facts.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::actors {

/// Which rank waits for which, by the collectives that ranks have entered and not left.
///
/// When one rank hangs all others stand still within a step, each in some collective. The rank that
/// others wait for, and that waits for none itself, is the one to look at. If there is none, either
/// ranks wait for each other in a circle, or all are where they should be and the bytes do not
/// arrive.
struct wait_graph {
  struct wait {
    std::uint32_t communicator = 0;
    std::uint64_t number = 0; ///< of the collective
    diag::collective kind = diag::collective::none;
    std::vector<std::uint32_t> ranks; ///< that wait in it
    duration shortest{};              ///< of their waits
  };
  /// The collective in which most ranks wait for a culprit, else in which most ranks wait.
  std::optional<wait> waits;
  /// Others wait for them, and they wait in no collective.
  std::vector<std::uint32_t> outside;
  /// Others wait for them, and they are in an earlier collective that all have entered; or, if
  /// there is none that others wait for, all that wait where all have entered.
  std::vector<std::uint32_t> inside;
  /// Entered something else in the same place of the order; the fewer of both. This needs neither a
  /// limit nor the other members: two of them are enough.
  std::vector<std::uint32_t> out_of_order;
  /// Wait for each other in a circle; the smallest side of it.
  std::vector<std::uint32_t> in_circle;
  wait other; ///< of `out_of_order`, `in_circle` and `inside`: where these ranks are
  /// So many members of the collective have never been seen in its communicator.
  std::uint32_t unseen = 0;
};

/// A message from one rank to another. The numbers of these say nothing about each other.
bool is_between_two(diag::collective kind);

wait_graph graph_of(const std::vector<rank_facts>& ranks, const communicator_names& names);

} // namespace troupe::actors
