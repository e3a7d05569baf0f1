#include "runtime/base/generations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string_view>

namespace troupe {

namespace {

constexpr std::uint64_t counts = 4096; ///< of one term
constexpr std::string_view before_count = "generation ";
constexpr std::string_view before_term = " of term ";

/// The first term that there can be is 1; an actor that follows no master has 0.
/// Bounded, so that a clock that is wrong by many thousand years makes no number small.
generation first_of(term master) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max() / counts - 1;
  return generation{(std::clamp<std::uint64_t>(master.value, 1, most) - 1) * counts};
}

} // namespace

/// `known` is above the first of this term if this master has proposed some already. It is too if a
/// clock was set back; then the journal's number counts and not the clock.
generation next_generation(generation known, term master) {
  const auto next = known.next();
  return std::max(next, generation{first_of(master).value + count_of(next)});
}

term term_of(generation g) {
  return term{g.value / counts + 1};
}

generation with_term(generation g, term master) {
  return generation{first_of(master).value + count_of(g)};
}

std::uint64_t count_of(generation g) {
  return g.value % counts;
}

std::string in_full(generation g) {
  const auto count = fmt::format("{}{}", before_count, count_of(g));
  return g.value < counts ? count : fmt::format("{}{}{}", count, before_term, g.value / counts + 1);
}

std::optional<generation> generation_in(const std::string& full) {
  if (full.rfind(before_count, 0) != 0)
    return std::nullopt;
  const auto number_at = [&full](std::size_t at) {
    return std::strtoull(full.c_str() + at, nullptr, 10);
  };
  const auto from = full.find(before_term);
  const generation found{
      (from == std::string::npos ? 0 : first_of(term{number_at(from + before_term.size())}).value) +
      number_at(before_count.size())};
  // Whatever the text was, it is a name only if it is this generation's.
  return full == in_full(found) ? std::optional(found) : std::nullopt;
}

} // namespace troupe
