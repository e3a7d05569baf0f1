#include "runtime/base/filled.hpp"

#include <algorithm>

namespace troupe {

namespace {

/// Of UTF-8, without the bytes that go on with a character.
std::size_t characters_in(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](unsigned char byte) { return (byte & 0xc0) != 0x80; }));
}

} // namespace

std::string filled(std::string_view text, std::size_t indent, std::size_t width) {
  std::string out;
  auto at = indent;
  for (bool more = true; more;) {
    const auto end = text.find(' ');
    const auto word = text.substr(0, end);
    const auto room = characters_in(word);
    if (at > indent && at + 1 + room > width) {
      out.append("\n").append(indent, ' ');
      at = indent;
    } else if (at > indent) {
      out += ' ';
      ++at;
    }
    out += word;
    at += room;
    more = end != std::string_view::npos;
    text.remove_prefix(more ? end + 1 : text.size());
  }
  return out;
}

} // namespace troupe
