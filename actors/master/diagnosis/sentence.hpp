#pragma once

#include "actors/master/diagnosis/verdict.hpp"

#include <string>
#include <vector>

/// Verdicts for people: one line that says which rank, what it does, for how long, and what can be
/// done about it.
namespace troupe::actors {

/// "0-3, 5"; of very many runs the first ones, "and 17 more".
std::string rank_runs(const std::vector<std::uint32_t>& ascending);

/// At most limits::sentence_max bytes.
std::string sentence_of(const verdict& v, const std::vector<rank_facts>& ranks,
                        const communicator_names& names);

struct slow_rank {
  std::uint32_t rank = 0;
  double score = 0;       ///< by the median of the others
  double by_its_past = 0; ///< 0: unknown
  duration busy{};
  duration others{};
};
std::string sentence_of(const slow_rank& slow, const rank_facts& facts);

/// Facts that led to a verdict, one line each; bounded.
std::vector<std::string> evidence_of(const verdict& v, const std::vector<rank_facts>& ranks);

} // namespace troupe::actors
