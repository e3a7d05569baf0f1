#include "launch/options/values.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

namespace troupe::launch {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> words;
  std::size_t at = 0;
  while (true) {
    const auto end = text.find(separator, at);
    words.push_back(text.substr(at, end - at));
    if (end == std::string::npos)
      return words;
    at = end + 1;
  }
}

std::string stripped(const std::string& text) {
  // What Python strips, as far as it is ASCII.
  constexpr std::string_view space = " \t\n\v\f\r\x1c\x1d\x1e\x1f";
  const auto first = text.find_first_not_of(space);
  if (first == std::string::npos)
    return {};
  return text.substr(first, text.find_last_not_of(space) - first + 1);
}

std::optional<std::uint64_t> digits(const std::string& text) {
  std::uint64_t n = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (text.empty() || bad != std::errc{} || end != text.data() + text.size())
    return std::nullopt;
  return n;
}

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Drops the underscores that stand singly between two digits; nothing if there are others.
std::optional<std::string> without_underscores(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_')
      out += text[i];
    else if (i == 0 || i + 1 == text.size() || !is_digit(text[i - 1]) || !is_digit(text[i + 1]))
      return std::nullopt;
  }
  return out;
}

} // namespace

std::optional<std::int64_t> python_int(const std::string& text) {
  auto plain = without_underscores(stripped(text));
  if (!plain || plain->empty())
    return std::nullopt;
  const bool negative = plain->front() == '-';
  if (negative || plain->front() == '+')
    plain->erase(0, 1);
  if (plain->empty() || !std::all_of(plain->begin(), plain->end(), is_digit))
    return std::nullopt;
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  std::int64_t n = 0;
  const auto parsed = std::from_chars(plain->data(), plain->data() + plain->size(), n);
  if (parsed.ec != std::errc{})
    n = most;
  return negative ? -n : n;
}

std::optional<double> python_float(const std::string& text) {
  auto plain = without_underscores(stripped(text));
  if (!plain || plain->empty())
    return std::nullopt;
  const bool negative = plain->front() == '-';
  if (negative || plain->front() == '+')
    plain->erase(0, 1);
  // A second sign, and the payload of a NaN, are C's and not Python's.
  if (plain->find_first_of("-+") == 0 || plain->find('(') != std::string::npos)
    return std::nullopt;
  double d = 0;
  const auto parsed = std::from_chars(plain->data(), plain->data() + plain->size(), d);
  if (parsed.ptr != plain->data() + plain->size() || parsed.ec == std::errc::invalid_argument)
    return std::nullopt;
  // Too large or too small for a double: Python says infinity and nought.
  if (parsed.ec == std::errc::result_out_of_range)
    d = plain->find("e-") == std::string::npos && plain->find("E-") == std::string::npos
            ? std::numeric_limits<double>::infinity()
            : 0;
  return negative ? -d : d;
}

} // namespace troupe::launch
