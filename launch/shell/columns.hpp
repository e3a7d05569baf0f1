#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// How much room UTF-8 text takes on a terminal.
namespace troupe::launch {

/// Columns of a line without control characters: none for a combining mark, two for the wide
/// characters of East Asia and for emoji, one for all others.
std::size_t columns_of(std::string_view text);

/// The line in at most so many columns: what is longer ends with an ellipsis.
std::string cut_to(std::string_view text, std::size_t columns);

/// The same, filled with spaces to exactly so many columns.
std::string fitted(std::string_view text, std::size_t columns);

} // namespace troupe::launch
