#include "runtime/os/stacks/line_table_core.hpp"

#include <cstddef>

namespace troupe::os {

namespace {

std::uint32_t as_line(std::int64_t line) {
  return line > 0 && line <= INT32_MAX ? static_cast<std::uint32_t>(line) : 0;
}

std::uint32_t line_by_pairs(std::string_view table, std::int64_t line, std::int64_t at) {
  std::int64_t address = 0;
  for (std::size_t n = 0; n + 1 < table.size(); n += 2) {
    address += static_cast<unsigned char>(table[n]);
    if (address > at)
      break;
    line += static_cast<signed char>(table[n + 1]);
  }
  return as_line(line);
}

std::uint32_t line_by_ranges(std::string_view table, std::int64_t line, std::int64_t at) {
  constexpr int no_line = -128;
  std::int64_t end = 0;
  for (std::size_t n = 0; n + 1 < table.size(); n += 2) {
    end += static_cast<unsigned char>(table[n]);
    const int step = static_cast<signed char>(table[n + 1]);
    if (step != no_line)
      line += step;
    if (at < end)
      return step == no_line ? 0 : as_line(line);
  }
  return 0;
}

/// Six bits in each byte, the lowest first; bit 6 says that more follow.
std::uint64_t varint(std::string_view table, std::size_t& n) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; n < table.size() && shift < 64; shift += 6) {
    const auto byte = static_cast<unsigned char>(table[n++]);
    value |= static_cast<std::uint64_t>(byte & 63) << shift;
    if ((byte & 64) == 0)
      break;
  }
  return value;
}

/// The lowest bit is the sign.
std::int64_t signed_varint(std::string_view table, std::size_t& n) {
  const auto value = varint(table, n);
  const auto magnitude = static_cast<std::int64_t>((value >> 1) & INT32_MAX);
  return (value & 1) != 0 ? -magnitude : magnitude;
}

std::uint32_t line_by_entries(std::string_view table, std::int64_t line, std::int64_t at) {
  constexpr unsigned first_on_one_line = 10, last_on_one_line = 12;
  constexpr unsigned without_columns = 13, with_all = 14, without_a_line = 15;
  std::int64_t end = 0;
  std::size_t n = 0;
  while (n < table.size()) {
    const auto head = static_cast<unsigned char>(table[n++]);
    const unsigned code = (head >> 3) & 15;
    end += 2 * ((head & 7) + 1);
    if (code == with_all || code == without_columns)
      line += signed_varint(table, n);
    else if (code >= first_on_one_line && code <= last_on_one_line)
      line += code - first_on_one_line;
    if (at < end)
      return code == without_a_line ? 0 : as_line(line);
    // Only the first byte of an entry has the highest bit.
    while (n < table.size() && (static_cast<unsigned char>(table[n]) & 128) == 0)
      ++n;
  }
  return 0;
}

} // namespace

std::uint32_t line_at(line_table kind, std::string_view table, std::uint32_t first_line,
                      std::int64_t at) {
  if (at < 0)
    return as_line(first_line);
  switch (kind) {
  case line_table::pairs:
    return line_by_pairs(table, first_line, at);
  case line_table::ranges:
    return line_by_ranges(table, first_line, at);
  case line_table::entries:
    return line_by_entries(table, first_line, at);
  }
  return 0;
}

} // namespace troupe::os
