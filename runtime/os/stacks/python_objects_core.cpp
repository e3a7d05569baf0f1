#include "runtime/os/stacks/python_objects_core.hpp"

#include "runtime/os/stacks/limits.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace troupe::os {

namespace {

void append_utf8(std::string& into, std::uint32_t c) {
  const auto byte = [&into](std::uint32_t b) { into.push_back(static_cast<char>(b)); };
  if (c < 0x80) {
    byte(c);
  } else if (c < 0x800) {
    byte(0xc0 | c >> 6);
    byte(0x80 | (c & 0x3f));
  } else if (c >= 0xd800 && c < 0xe000) {
    byte('?'); // half a character
  } else if (c < 0x10000) {
    byte(0xe0 | c >> 12);
    byte(0x80 | (c >> 6 & 0x3f));
    byte(0x80 | (c & 0x3f));
  } else if (c < 0x110000) {
    byte(0xf0 | c >> 18);
    byte(0x80 | (c >> 12 & 0x3f));
    byte(0x80 | (c >> 6 & 0x3f));
    byte(0x80 | (c & 0x3f));
  } else {
    byte('?');
  }
}

/// `kind` bytes for each character, the lowest first.
std::string utf8_of(std::string_view characters, std::size_t kind) {
  std::string text;
  for (std::size_t at = 0; at + kind <= characters.size(); at += kind) {
    std::uint32_t c = 0;
    for (std::size_t n = 0; n < kind; ++n)
      c |= static_cast<std::uint32_t>(static_cast<unsigned char>(characters[at + n])) << (8 * n);
    append_utf8(text, c);
  }
  return text;
}

constexpr std::size_t type_name_max = 16;

} // namespace

std::optional<std::string> python_objects::text(std::uint64_t object, std::size_t characters_max) {
  std::int64_t length = 0;
  std::uint32_t state = 0;
  if (object == 0 || !read_value(memory_, object + layout_.text_length, length) ||
      !read_value(memory_, object + layout_.text_state, state) || length < 0)
    return std::nullopt;
  const std::size_t kind = state >> 2 & 7;
  const bool is_compact = (state & 0x20) != 0, is_ascii = (state & 0x40) != 0;
  if (!is_compact || (kind != 1 && kind != 2 && kind != 4) || (is_ascii && kind != 1))
    return std::nullopt;
  const auto taken = static_cast<std::size_t>(
      std::min<std::uint64_t>(static_cast<std::uint64_t>(length), characters_max));
  std::string raw(taken * kind, '\0');
  const auto from = object + (is_ascii ? layout_.text_ascii : layout_.text_wide);
  if (!raw.empty() && !memory_.read(from, raw.data(), raw.size()))
    return std::nullopt;
  // What calls itself ASCII need not be.
  return utf8_of(raw, kind);
}

std::optional<std::string> python_objects::bytes(std::uint64_t object, std::size_t bytes_max) {
  std::int64_t size = 0;
  if (object == 0 || !read_value(memory_, object + layout_.bytes_size, size) || size < 0 ||
      static_cast<std::uint64_t>(size) > bytes_max)
    return std::nullopt;
  std::string raw(static_cast<std::size_t>(size), '\0');
  if (!raw.empty() && !memory_.read(object + layout_.bytes_data, raw.data(), raw.size()))
    return std::nullopt;
  return raw;
}

std::optional<std::uint64_t> python_objects::integer(std::uint64_t object) {
  std::int64_t tag = 0;
  std::uint32_t digit = 0;
  if (!is_a(object, "int") || !read_value(memory_, object + layout_.int_tag, tag) ||
      !read_value(memory_, object + layout_.int_digits, digit))
    return std::nullopt;
  const auto digits = layout_.int_has_sign_bits ? tag >> 3 : tag;
  if (digits == 0)
    return 0;
  const bool is_negative = layout_.int_has_sign_bits && (tag & 3) == 2;
  if (digits != 1 || is_negative)
    return std::nullopt;
  return digit;
}

std::optional<std::size_t> python_objects::place_of(std::uint64_t tuple, std::string_view name) {
  std::int64_t size = 0;
  if (tuple == 0 || !read_value(memory_, tuple + layout_.tuple_size, size) || size < 0)
    return std::nullopt;
  const auto looked_at =
      std::min<std::uint64_t>(static_cast<std::uint64_t>(size), limits::stacks_variables_max);
  for (std::size_t n = 0; n < looked_at; ++n) {
    std::uint64_t item = 0;
    if (!read_value(memory_, tuple + layout_.tuple_items + 8 * n, item))
      return std::nullopt;
    if (text(item, name.size() + 1) == name)
      return n;
  }
  return std::nullopt;
}

bool python_objects::is_a(std::uint64_t object, std::string_view type) {
  std::uint64_t address = 0, name = 0;
  if (object == 0 || !read_value(memory_, object + layout_.object_type, address) || address == 0)
    return false;
  const auto known = types_.find(address);
  if (known != types_.end())
    return known->second == type;
  std::array<char, type_name_max> raw{};
  if (!read_value(memory_, address + layout_.type_name, name) || name == 0 ||
      !memory_.read(name, raw.data(), type.size() + 1))
    return false;
  if (std::string_view(raw.data(), type.size() + 1) != std::string(type) + '\0')
    return false;
  types_.emplace(address, type);
  return true;
}

} // namespace troupe::os
