#include "launch/shell/columns.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

namespace troupe::launch {

namespace {

using range = std::pair<std::uint32_t, std::uint32_t>;

/// The blocks of Unicode that matter in names and messages, not every character of the standard.
constexpr range none[] = {{0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},    {0x610, 0x61a},
                          {0x64b, 0x65f},   {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff},  {0x20d0, 0x20ff},
                          {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xe0100, 0xe01ef}};
constexpr range two[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0x33ff},
                         {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xa000, 0xa4cf},
                         {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},
                         {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x1f300, 0x1f64f},
                         {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};

template<std::size_t N>
bool within(const range (&ranges)[N], std::uint32_t c) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [c](const range& r) { return r.first <= c && c <= r.second; });
}

/// Takes the first character off: its bytes and its columns. A byte that is no UTF-8 is one.
std::pair<std::size_t, std::size_t> first_of(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t bytes = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (bytes == 1 || bytes > text.size())
    return {1, 1};
  std::uint32_t c = lead & (0xffu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i)
    c = c << 6 | (static_cast<unsigned char>(text[i]) & 0x3fu);
  return {bytes, within(none, c) ? 0u : within(two, c) ? 2u : 1u};
}

} // namespace

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const auto [bytes, wide] = first_of(text);
    columns += wide;
    text.remove_prefix(bytes);
  }
  return columns;
}

std::string cut_to(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns)
    return std::string(text);
  if (columns == 0)
    return {};
  std::size_t bytes = 0, taken = 0;
  while (true) {
    const auto [more, wide] = first_of(text.substr(bytes));
    if (taken + wide > columns - 1)
      return std::string(text.substr(0, bytes)) + "…";
    bytes += more;
    taken += wide;
  }
}

std::string fitted(std::string_view text, std::size_t columns) {
  auto out = cut_to(text, columns);
  return out.append(columns - std::min(columns, columns_of(out)), ' ');
}

} // namespace troupe::launch
