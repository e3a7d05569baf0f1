#include "launch/options/macros.hpp"

#include <cctype>

namespace troupe::launch {

namespace {

bool begins_name(unsigned char c) {
  return std::isalpha(c) || c == '_';
}

/// Where the name that begins at `at` ends; `at` if there is none.
std::size_t end_of_name(const std::string& text, std::size_t at) {
  if (at >= text.size() || !begins_name(static_cast<unsigned char>(text[at])))
    return at;
  while (at < text.size() && (begins_name(static_cast<unsigned char>(text[at])) ||
                              std::isdigit(static_cast<unsigned char>(text[at]))))
    ++at;
  return at;
}

} // namespace

std::string substituted(const std::string& text, const std::map<std::string, std::string>& values) {
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    if (text[at] != '$') {
      out += text[at++];
      continue;
    }
    if (text.compare(at, 2, "$$") == 0) {
      out += '$';
      at += 2;
      continue;
    }
    const bool braced = text.compare(at, 2, "${") == 0;
    const auto from = at + (braced ? 2 : 1);
    const auto to = end_of_name(text, from);
    const auto value = values.find(text.substr(from, to - from));
    const bool closed = !braced || (to < text.size() && text[to] == '}');
    if (to == from || !closed || value == values.end()) {
      out += text[at++];
      continue;
    }
    out += value->second;
    at = to + (braced ? 1 : 0);
  }
  return out;
}

} // namespace troupe::launch
