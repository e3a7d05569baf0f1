#pragma once

#include <string_view>

namespace troupe::trace {

/// The directory, made if it is not there; its parent must be. False: it cannot be used.
bool make_directory(const char* path);
/// Replaces the file whole: a reader sees the old text or the new one. False: the disk refused.
bool replace_file(const char* directory, const char* name, std::string_view words);
/// One line to standard error, with the rank.
void tell(int rank, std::string_view line);

} // namespace troupe::trace
