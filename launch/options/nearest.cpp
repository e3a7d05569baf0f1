#include "launch/options/nearest.hpp"

#include <algorithm>
#include <cstddef>

namespace troupe::launch {

namespace {

/// Longer words are no slips of a finger, and the work grows with the square.
constexpr std::size_t length_max = 64;

std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j)
    d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i)
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t differs = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + differs});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

} // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  if (word.size() > length_max)
    return {};
  std::string best;
  // A third of the letters: what differs more is another word.
  auto least = word.size() / 3 + 1;
  for (const auto& candidate : candidates)
    if (const auto d = candidate.size() > length_max ? least : distance(word, candidate);
        d < least) {
      least = d;
      best = candidate;
    }
  return best;
}

} // namespace troupe::launch
