#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// Names of functions come from other programs, and end in pictures that a browser opens and in
/// files that other tools read. None of these texts can end the text around it.
namespace troupe::diag {

/// For text and attributes of XML 1.0, also within HTML: no markup, no character that XML forbids.
std::string for_xml(std::string_view text);
/// For a string of JSON, without its quotes. Has no `<`, so it can stand in a script too.
std::string for_json(std::string_view text);
/// For one frame of a folded stack: on one line, and without the `;` that separates frames.
std::string for_folded(std::string_view text);

/// Takes the next character of a text; what is no UTF-8 is U+FFFD, byte by byte.
char32_t next_character(std::string_view& text);
void append_utf8(std::string& out, char32_t character);

} // namespace troupe::diag
