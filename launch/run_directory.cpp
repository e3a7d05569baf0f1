#include "launch/run_directory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace troupe::launch {

namespace fs = std::filesystem;

namespace {

result<std::string> make_directory(const std::string& base, const std::string& job) {
  std::string name = job;
  std::replace(name.begin(), name.end(), '/', '_');
  std::error_code bad;
  const auto parent = base.empty() ? fs::temp_directory_path(bad) : fs::path(base);
  if (!bad && !base.empty())
    fs::create_directories(parent, bad);
  if (bad)
    return failure(errc::invalid, fmt::format("--log-dir {}: {}", parent.string(), bad.message()));
  std::string pattern =
      (parent / (fmt::format("{}{}_XXXXXX", base.empty() ? "troupe_" : "", name))).string();
  if (!::mkdtemp(pattern.data()))
    return failure(errc::invalid, fmt::format("--log-dir: no directory can be made in {}: {}",
                                              parent.string(), std::strerror(errno)));
  return pattern;
}

} // namespace

result<run_directory> run_directory::make(const std::string& log_dir, const std::string& job) {
  const bool no_files = log_dir == "/dev/null";
  const bool temporary = no_files || log_dir.empty();
  auto path = make_directory(temporary ? std::string{} : log_dir, job);
  if (!path)
    return tl::make_unexpected(path.error());
  return run_directory(*path, no_files ? std::string{} : *path, temporary);
}

namespace {

/// Whether a worker has written anything.
bool holds_output(const fs::path& directory) {
  std::error_code gone;
  for (const auto& entry : fs::recursive_directory_iterator(directory, gone)) {
    const auto extension = entry.path().extension();
    if ((extension == ".log" || extension == ".json") && entry.is_regular_file(gone) &&
        entry.file_size(gone) > 0)
      return true;
  }
  return false;
}

} // namespace

void run_directory::tidy_up() const {
  if (!temporary_ || holds_output(path_))
    return;
  std::error_code ignored; // it lies in the temporary directory, which the system tidies up as well
  fs::remove_all(path_, ignored);
}

} // namespace troupe::launch
