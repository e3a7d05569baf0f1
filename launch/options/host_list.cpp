#include "launch/options/host_list.hpp"

#include "launch/options/values.hpp"
#include "runtime/base/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

namespace troupe::launch {

namespace {

/// "7" or "001-003".
struct span {
  std::uint64_t first = 0, last = 0;
  std::size_t width = 0;
};

/// What one position of a name can be: some text, or the numbers of a pair of brackets.
struct piece {
  std::string text;
  std::vector<span> spans;

  std::uint64_t count() const {
    if (spans.empty())
      return 1;
    std::uint64_t n = 0;
    for (const auto& s : spans)
      n += s.last - s.first + 1;
    return n;
  }

  std::string at(std::uint64_t i) const {
    for (const auto& s : spans) {
      const auto here = s.last - s.first + 1;
      if (i < here)
        return fmt::format("{:0{}}", s.first + i, s.width);
      i -= here;
    }
    return text;
  }
};

using pattern = std::vector<piece>;

constexpr std::uint64_t number_max = 999'999'999;
/// Slurm's own names have at most two or three.
constexpr std::size_t brackets_max = 4;

tl::unexpected<error> wrong(const std::string& list, const std::string& why) {
  // A list may be as long as the environment can carry.
  constexpr std::size_t shown = 80;
  return failure(errc::invalid, fmt::format("'{}{}' is no list of hosts: {}", list.substr(0, shown),
                                            list.size() > shown ? "…" : "", why));
}

std::optional<span> parse_span(const std::string& text) {
  const auto dash = text.find('-');
  const auto low = text.substr(0, dash);
  const auto high = dash == std::string::npos ? low : text.substr(dash + 1);
  const auto first = digits(low), last = digits(high);
  if (!first || !last || *first > *last || *last > number_max || low.size() > 9)
    return std::nullopt;
  return span{*first, *last, low.size()};
}

std::optional<piece> parse_brackets(const std::string& inside) {
  piece p;
  for (const auto& word : split(inside, ',')) {
    const auto s = parse_span(word);
    if (!s)
      return std::nullopt;
    p.spans.push_back(*s);
  }
  return p;
}

bool in_names(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
}

/// The list, cut at the commas outside of brackets.
std::vector<std::string> cut(const std::string& list) {
  std::vector<std::string> words{""};
  bool inside = false;
  for (const char c : list) {
    inside = c == '[' || (inside && c != ']');
    if (c == ',' && !inside)
      words.emplace_back();
    else
      words.back() += c;
  }
  return words;
}

result<pattern> parse_pattern(const std::string& word) {
  pattern p;
  std::size_t at = 0, brackets = 0;
  while (at < word.size()) {
    if (word[at] == '[') {
      const auto end = word.find(']', at);
      auto numbers = end == std::string::npos ? std::nullopt
                                              : parse_brackets(word.substr(at + 1, end - at - 1));
      if (!numbers || ++brackets > brackets_max)
        return wrong(word, "brackets hold numbers and ranges, [1,03-12]");
      p.push_back(std::move(*numbers));
      at = end + 1;
      continue;
    }
    const auto end = std::min(word.find('[', at), word.size());
    auto text = word.substr(at, end - at);
    if (!std::all_of(text.begin(), text.end(), in_names))
      return wrong(word, "a name has letters, digits, dots and dashes");
    p.push_back({std::move(text), {}});
    at = end;
  }
  if (p.empty())
    return wrong(word, "a name is empty");
  return p;
}

std::uint64_t count(const pattern& p) {
  std::uint64_t n = 1;
  for (const auto& each : p)
    n = std::min<std::uint64_t>(n * std::min<std::uint64_t>(each.count(), limits::nodes_max + 1),
                                limits::nodes_max + 1);
  return n;
}

/// The `i`-th name of a pattern.
std::string name_at(const pattern& p, std::uint64_t i) {
  std::string name;
  for (auto each = p.rbegin(); each != p.rend(); ++each) {
    name = each->at(i % each->count()) + name;
    i /= each->count();
  }
  return name;
}

} // namespace

result<std::vector<std::string>> parse_host_list(const std::string& text) {
  const auto list = stripped(text);
  std::vector<std::string> hosts;
  for (const auto& word : cut(list)) {
    const auto p = parse_pattern(stripped(word));
    if (!p)
      return tl::make_unexpected(p.error());
    const auto more = count(*p);
    if (hosts.size() + more > limits::nodes_max)
      return wrong(list, fmt::format("it names more than {} nodes", limits::nodes_max));
    for (std::uint64_t i = 0; i < more; ++i) {
      hosts.push_back(name_at(*p, i));
      if (hosts.back().size() > limits::name_max)
        return wrong(list, fmt::format("a name has more than {} characters", limits::name_max));
    }
  }
  return hosts;
}

} // namespace troupe::launch
