#pragma once

#include <map>
#include <string>

namespace troupe::launch {

/// Puts values where `${name}` or `$name` stands, as Python's string.Template does when it is told
/// to be safe, which is what torchrun uses: `$$` becomes `$`, and what names no value stays as it
/// is.
std::string substituted(const std::string& text, const std::map<std::string, std::string>& values);

} // namespace troupe::launch
