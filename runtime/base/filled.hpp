#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe {

/// The words of `text` filled into lines of at most `width` columns. The first line begins at
/// column `indent`, where its writer stands; the others behind so many blanks. A word that is
/// longer than a line has one of its own. Each character counts for one column.
std::string filled(std::string_view text, std::size_t indent, std::size_t width);

} // namespace troupe
