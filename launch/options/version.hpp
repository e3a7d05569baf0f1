#pragma once

#include <string>

namespace troupe::launch {

/// "troupe 0.1.0 (1a2b3c4)" and the end of the line. The commit is missing where it was built
/// without a repository, and has a `+` behind it where files differed from it.
std::string version_text();

/// "0.1.0"
std::string version_number();

} // namespace troupe::launch
