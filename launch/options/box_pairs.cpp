#include "launch/options/box_pairs.hpp"

#include "launch/options/values.hpp"
#include "probe/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace troupe::launch {

namespace {

/// No node has as many devices.
constexpr std::uint64_t index_max = 9'999;

std::optional<box_pair> pair_of(const std::string& word) {
  const auto ends = split(word, ':');
  if (ends.size() != 2)
    return std::nullopt;
  const auto first = digits(ends[0]), second = digits(ends[1]);
  if (!first || !second || *first > index_max || *second > index_max)
    return std::nullopt;
  return box_pair(static_cast<std::uint32_t>(*first), static_cast<std::uint32_t>(*second));
}

} // namespace

bool is_box_pair(const std::string& word) {
  return pair_of(word).has_value();
}

result<std::vector<box_pair>> box_pairs_of(const std::string& text) {
  auto with_blanks = text;
  std::replace(with_blanks.begin(), with_blanks.end(), ',', ' ');
  std::vector<box_pair> pairs;
  for (const auto& word : split(with_blanks, ' ')) {
    if (word.empty())
      continue;
    const auto pair = pair_of(word);
    if (!pair)
      return failure(errc::invalid, fmt::format("--box-pairs: '{}' is no pair of devices; one is "
                                                "written 0:1",
                                                word));
    if (pair->first == pair->second)
      return failure(errc::invalid,
                     fmt::format("--box-pairs: '{}' is one device; a pair is of two", word));
    pairs.push_back(*pair);
  }
  if (pairs.empty() || pairs.size() > limits::box_pairs_max)
    return failure(errc::invalid, fmt::format("--box-pairs: {} pairs; 1 to {} are possible",
                                              pairs.size(), limits::box_pairs_max));
  return pairs;
}

} // namespace troupe::launch
