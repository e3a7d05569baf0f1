#pragma once

#include "actors/master/diagnosis/diagnosis_policy.hpp"
#include "actors/master/diagnosis/rank_facts.hpp"
#include "actors/master/diagnosis/wait_graph.hpp"
#include "messages/kinds.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

/// What all ranks together say about a standstill.
struct verdict {
  messages::HangKind kind = messages::HangKind::ALONE;
  std::vector<std::uint32_t> culprits; ///< ascending; empty only for a link
  /// Which of them the sentence is about.
  std::uint32_t first = 0;
  wait_graph::wait waits; ///< no ranks: none is known to wait
  /// OTHER_COLLECTIVE: where the culprits are. LINK: which all have entered and `other.ranks` have
  /// not left; the ranks of `waits` may be a collective further.
  wait_graph::wait other;
  duration stood{};
  bool moves = false; ///< the culprits move, and have reported nothing for very long
  /// None of the culprits may be ended before it has stood for so long: it may be at work.
  duration act_least{};
  bool goes_on = false;   ///< the culprits make steps without the others
  bool all_alike = false; ///< no rank is different from the others
  /// They have entered like the others, and take no part in it.
  bool inside = false;
  std::vector<std::string> slow_peers; ///< a link: the peers that are named most

  /// `other` is another collective than `waits`.
  bool elsewhere() const {
    return other.communicator != waits.communicator || other.number != waits.number;
  }
  /// Says nothing new. A rank that is named before the others have come to wait for it stays the
  /// culprit when they have.
  bool same_as(const verdict& other_one) const {
    const auto of_one = [](messages::HangKind k) {
      return k == messages::HangKind::ALONE || k == messages::HangKind::NOT_ENTERED;
    };
    return culprits == other_one.culprits &&
           (kind == other_one.kind || (of_one(kind) && of_one(other_one.kind)));
  }
};

/// How long ranks have stood in each phase and gone on by themselves, whichever rank that was.
using survived_phases = std::array<duration, diag::phases>;

/// Nothing: there is no hang, or it is too early to say. All ranks of the world are known.
/// `patient`: looks at some of them may be on their way.
std::optional<verdict> judge(const diagnosis_policy& policy, const std::vector<rank_facts>& ranks,
                             const communicator_names& names, bool patient = false,
                             const survived_phases& survived = {});

} // namespace troupe::actors
