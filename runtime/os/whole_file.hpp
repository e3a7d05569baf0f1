#pragma once

#include "runtime/base/result.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace troupe::os {

/// A small file that others read: all of it is there, or what was there before. Not for what must
/// survive a power cut.
inline result<void> write_whole(const std::filesystem::path& path, std::string_view bytes) {
  auto part = path;
  part += ".part";
  errno = 0;
  std::ofstream file(part, std::ios::trunc | std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (file && std::rename(part.c_str(), path.c_str()) == 0)
    return {};
  const auto wrong = errno != 0 ? errno : EIO;
  std::error_code ignored;
  std::filesystem::remove(part, ignored);
  return failure(errc::unavailable, fmt::format("{}: {}", path.string(), std::strerror(wrong)));
}

} // namespace troupe::os
