#include "diag/stacks/escaped.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <iterator>

namespace troupe::diag {

namespace {

constexpr char32_t no_character = 0xfffd;

/// How many bytes a character that begins with this one has; 0: none begins so.
std::size_t length_of(unsigned char first) {
  if (first < 0x80)
    return 1;
  if (first >= 0xc2 && first < 0xe0)
    return 2;
  if (first >= 0xe0 && first < 0xf0)
    return 3;
  return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

bool is_character(char32_t c, std::size_t length) {
  if (length == 3)
    return c >= 0x800 && (c < 0xd800 || c > 0xdfff);
  return length != 4 || (c >= 0x10000 && c <= 0x10ffff);
}

bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029;
}

} // namespace

char32_t next_character(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text.front());
  const auto length = length_of(first);
  if (length == 1) {
    text.remove_prefix(1);
    return first;
  }
  char32_t c = first & (0x7fu >> length);
  std::size_t have = 1;
  while (have < length && have < text.size() &&
         (static_cast<unsigned char>(text[have]) & 0xc0) == 0x80)
    c = c << 6 | (static_cast<unsigned char>(text[have++]) & 0x3f);
  const bool whole = length != 0 && have == length && is_character(c, length);
  text.remove_prefix(whole ? length : 1);
  return whole ? c : no_character;
}

void append_utf8(std::string& out, char32_t c) {
  const auto tail = [&out, c](unsigned shift) {
    out += static_cast<char>(0x80 | (c >> shift & 0x3f));
  };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | c >> 6);
    tail(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | c >> 12);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0 | c >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

std::string for_xml(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const auto c = next_character(text);
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else
      append_utf8(out, is_control(c) || c == 0xfffe || c == 0xffff ? no_character : c);
  }
  return out;
}

std::string for_json(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const auto c = next_character(text);
    if (c == '"' || c == '\\')
      out.append({'\\', static_cast<char>(c)});
    else if (is_control(c) || c == '<')
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<std::uint32_t>(c));
    else
      append_utf8(out, c);
  }
  return out;
}

std::string for_folded(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto c = next_character(text);
    if (is_control(c))
      out += ' ';
    else if (c == ';')
      out += ':';
    else
      append_utf8(out, c);
  }
  return out;
}

} // namespace troupe::diag
