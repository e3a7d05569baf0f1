#pragma once

#include <cstdint>
#include <string_view>

namespace troupe::os {

/// How a version of Python notes which line an instruction belongs to.
enum class line_table {
  pairs,   ///< 3.8, 3.9 (co_lnotab): steps of address and of line
  ranges,  ///< 3.10 (PEP 626): lengths and steps of line; some have no line
  entries, ///< 3.11 and later (PEP 657): entries of variable length, with columns
};

/// The line of the instruction at byte `at` of the code; 0 if it has none, or if the table, which
/// may be any bytes, does not say. `at` below 0 is a function that has not begun: its first line.
std::uint32_t line_at(line_table kind, std::string_view table, std::uint32_t first_line,
                      std::int64_t at);

} // namespace troupe::os
