#include "runtime/os/watch/dump_files.hpp"

#include "diag/stacks/dump_file.hpp"
#include "runtime/os/whole_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

namespace troupe::os {

result<void> keep_dumps(const std::string& directory, const diag::dump_result& read) {
  // A rank is the training process and its children.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<diag::process_stacks>> ranks;
  for (const auto& process : read.stacks)
    if (process.rank < process.world_size)
      ranks[{process.rank, process.world_size}].push_back(process);
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error)
    return failure(errc::unavailable, fmt::format("{}: {}", directory, error.message()));
  for (const auto& [of, processes] : ranks) {
    const auto file =
        std::filesystem::path(directory) / diag::dump_file_name({of.first, of.second});
    if (auto written = write_whole(file, diag::dump_of(processes)); !written)
      return written;
  }
  return {};
}

} // namespace troupe::os
