#pragma once

#include <string>
#include <string_view>

namespace troupe::os {

/// The text with every byte that is not UTF-8 replaced by U+FFFD. For machines.
std::string valid_utf8(std::string_view text);

/// The text on one line, with everything escaped that could move the cursor, change colours or
/// reorder what is read: control characters, line ends, marks of direction, invisible characters.
/// For terminals, when the text may come from a worker or from another node.
std::string printable(std::string_view text);

} // namespace troupe::os
