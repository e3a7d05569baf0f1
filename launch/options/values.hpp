#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Words as torchrun reads them: its numbers are Python's.
namespace troupe::launch {

/// Between every separator; one empty word for an empty text.
std::vector<std::string> split(const std::string& text, char separator);

/// Without white space at either end.
std::string stripped(const std::string& text);

/// Only digits; nothing beyond 64 bits.
std::optional<std::uint64_t> digits(const std::string& text);

/// Python's int(): white space around, a sign, single underscores between digits. Numbers beyond 64
/// bits come back as the nearest that fits: the caller judges bounds.
std::optional<std::int64_t> python_int(const std::string& text);

/// Python's float(), which also reads "inf" and "nan".
std::optional<double> python_float(const std::string& text);

} // namespace troupe::launch
