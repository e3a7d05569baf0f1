#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace troupe::os {

/// What a file of the kernel says (below /proc or /sys). Empty if there is none, and as far as it
/// was read if what the file is about goes away meanwhile: reading then fails with an error, which
/// an iterator over the buffer of a stream would throw.
inline std::string contents_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

} // namespace troupe::os
