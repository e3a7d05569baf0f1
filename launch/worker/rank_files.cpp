#include "launch/worker/rank_files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace troupe::launch {

namespace fs = std::filesystem;

namespace {

result<void> replace(const fs::path& path, std::uint32_t number) {
  const fs::path part = path.string() + ".new";
  std::ofstream file(part, std::ios::trunc);
  file << number << '\n';
  file.close();
  std::error_code why;
  if (file)
    fs::rename(part, path, why);
  else
    why = {errno, std::generic_category()};
  if (!why)
    return {};
  return failure(errc::invalid, fmt::format("--rank-files: {} cannot be written: {}", path.string(),
                                            why.message()));
}

} // namespace

result<void> write_rank_files(const std::string& directory, const actors::assignment& place) {
  if (directory.empty())
    return {};
  std::error_code why;
  fs::create_directories(directory, why);
  if (auto written = replace(fs::path(directory) / "RANK_AFTER_ACC", place.group_rank); !written)
    return written;
  return replace(fs::path(directory) / "MASTER_INDEX", place.master_index);
}

} // namespace troupe::launch
