#include "launch/options/streams.hpp"

#include "launch/options/values.hpp"
#include "runtime/base/limits.hpp"

#include <fmt/format.h>

namespace troupe::launch {

std_streams stream_choice::of(std::uint32_t local_rank) const {
  if (by_rank.empty())
    return everyone;
  const auto found = by_rank.find(local_rank);
  return found == by_rank.end() ? std_streams{} : found->second;
}

bool stream_choice::any() const {
  if (by_rank.empty())
    return everyone != std_streams{};
  for (const auto& [rank, streams] : by_rank)
    if (streams != std_streams{})
      return true;
  return false;
}

namespace {

/// 0 none, 1 stdout, 2 stderr, 3 both.
std::optional<std_streams> streams_of(const std::string& text) {
  if (text.size() != 1 || text[0] < '0' || text[0] > '3')
    return std::nullopt;
  const auto bits = static_cast<unsigned>(text[0] - '0');
  return std_streams{(bits & 1u) != 0, (bits & 2u) != 0};
}

} // namespace

result<stream_choice> parse_stream_choice(const std::string& option, const std::string& text) {
  stream_choice choice;
  if (const auto all = streams_of(text)) {
    choice.everyone = *all;
    return choice;
  }
  for (const auto& pair : split(text, ',')) {
    const auto colon = pair.find(':');
    const auto rank = digits(pair.substr(0, colon));
    const auto streams =
        colon == std::string::npos ? std::nullopt : streams_of(pair.substr(colon + 1));
    if (!rank || !streams)
      return failure(
          errc::invalid,
          fmt::format("{}: '{}' is neither 0 (none), 1 (stdout), 2 (stderr), 3 (both) nor "
                      "a list such as 0:3,1:2 (local rank:which)",
                      option, text));
    if (*rank >= limits::local_world_max)
      return failure(errc::invalid, fmt::format("{}: there is no local rank {}; {} is the last",
                                                option, *rank, limits::local_world_max - 1));
    choice.by_rank[static_cast<std::uint32_t>(*rank)] = *streams;
  }
  return choice;
}

result<std::optional<std::set<std::uint32_t>>> parse_rank_filter(const std::string& text) {
  if (text.empty())
    return std::nullopt;
  std::set<std::uint32_t> ranks;
  for (const auto& word : split(text, ',')) {
    const auto rank = python_int(word);
    if (!rank)
      return failure(
          errc::invalid,
          fmt::format("--local-ranks-filter: '{}' is not a list of local ranks such as 0,2", text));
    if (*rank >= 0 && *rank < limits::local_world_max)
      ranks.insert(static_cast<std::uint32_t>(*rank));
  }
  return ranks;
}

std::vector<std::string> parse_words(const std::string& text) {
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ',')
      words.back() += text[i];
    else if (i + 1 < text.size() && text[i + 1] == ',')
      words.back() += text[i++];
    else
      words.emplace_back();
  }
  return words;
}

} // namespace troupe::launch
