#include "runtime/os/log/printable.hpp"

#include <boost/nowide/utf/convert.hpp>
#include <fmt/format.h>

#include <iterator>

namespace troupe::os {

namespace {

using boost::nowide::utf::code_point;
using utf8 = boost::nowide::utf::utf_traits<char>;

bool between(code_point c, code_point first, code_point last) {
  return first <= c && c <= last;
}

bool is_control(code_point c) {
  return c < 0x20 || between(c, 0x7f, 0x9f);
}

/// Takes no place of its own, or changes where others stand.
bool is_invisible(code_point c) {
  return c == 0xad || c == 0x61c || between(c, 0x200b, 0x200f) || between(c, 0x2028, 0x202e) ||
         between(c, 0x2060, 0x206f) || c == 0xfeff || between(c, 0xe0000, 0xe007f);
}

} // namespace

std::string valid_utf8(std::string_view text) {
  return boost::nowide::utf::convert_string<char>(text.data(), text.data() + text.size());
}

std::string printable(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    auto c = utf8::decode(at, end);
    if (!boost::nowide::utf::is_valid_codepoint(c))
      c = BOOST_NOWIDE_REPLACEMENT_CHARACTER;
    if (c == '\n')
      line += "\\n";
    else if (c == '\t')
      line += "\\t";
    else if (is_control(c))
      fmt::format_to(std::back_inserter(line), "\\x{:02x}", static_cast<unsigned>(c));
    else if (is_invisible(c))
      fmt::format_to(std::back_inserter(line), "\\u{:04x}", static_cast<unsigned>(c));
    else
      utf8::encode(c, std::back_inserter(line));
  }
  return line;
}

} // namespace troupe::os
