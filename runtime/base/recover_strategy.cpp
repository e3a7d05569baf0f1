#include "runtime/base/recover_strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace troupe {

namespace {

constexpr std::array<std::string_view, 5> strategies{"retry", "recover", "recover-in-place", "dump",
                                                     "exit"};

std::vector<std::string> words_in(const std::string& list) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= list.size();) {
    const auto comma = std::min(list.find(',', at), list.size());
    const auto word = list.substr(at, comma - at);
    const auto first = word.find_first_not_of(' ');
    words.push_back(first == std::string::npos
                        ? std::string()
                        : word.substr(first, word.find_last_not_of(' ') - first + 1));
    at = comma + 1;
  }
  return words;
}

} // namespace

std::string recover_strategies() {
  return fmt::format("{}", fmt::join(strategies, ", "));
}

std::optional<std::string> unknown_recover_strategy(const std::string& list) {
  for (const auto& word : words_in(list))
    if (std::find(strategies.begin(), strategies.end(), word) == strategies.end())
      return word;
  return std::nullopt;
}

std::string effect_of_recover_strategy(const std::string& list) {
  const auto words = words_in(list);
  const bool dumps = std::find(words.begin(), words.end(), "dump") != words.end();
  return fmt::format("it does not choose yet how the job recovers: {}{}", recovery_today,
                     dumps
                         ? "; for dump give --save_at_breakpoint, which writes the newest step in "
                           "memory to disk first"
                         : "");
}

} // namespace troupe
