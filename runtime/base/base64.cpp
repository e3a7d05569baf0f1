#include "runtime/base/base64.hpp"

#include <cstdint>

namespace troupe {

namespace {

constexpr std::string_view digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view blanks = " \t\r\n";

} // namespace

std::string base64_of(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const auto three = bytes.substr(at, 3);
    std::uint32_t bits = 0;
    for (std::size_t n = 0; n < 3; ++n)
      bits = bits << 8 | (n < three.size() ? static_cast<std::uint8_t>(three[n]) : 0u);
    for (std::size_t n = 0; n < 4; ++n)
      text += n <= three.size() ? digits[bits >> (18 - 6 * n) & 63] : '=';
  }
  return text;
}

std::optional<std::string> bytes_of_base64(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  std::size_t read = 0, padding = 0;
  for (const auto character : text) {
    if (blanks.find(character) != std::string_view::npos)
      continue;
    const auto digit = digits.find(character);
    if (character == '=')
      ++padding;
    else if (digit == std::string_view::npos || padding != 0)
      return std::nullopt;
    bits = bits << 6 | (character == '=' ? 0 : static_cast<std::uint32_t>(digit));
    if (++read % 4 == 0)
      for (const auto shift : {16, 8, 0})
        bytes += static_cast<char>(bits >> shift & 0xff);
  }
  if (read % 4 != 0 || padding > 2)
    return std::nullopt;
  bytes.resize(bytes.size() - padding);
  return bytes;
}

} // namespace troupe
