#pragma once

#include <optional>
#include <string>
#include <string_view>

/// RFC 4648, section 4.
namespace troupe {

/// In one line.
std::string base64_of(std::string_view bytes);

/// Lines may be broken. Nothing: it is no base64.
std::optional<std::string> bytes_of_base64(std::string_view text);

} // namespace troupe
