#include "launch/doctor/places.hpp"

#include "launch/options/journal_place.hpp"
#include "runtime/os/process/launch_plan.hpp"
#include "runtime/os/storage/storage_error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include <sys/statvfs.h>
#include <unistd.h>

namespace troupe::launch::doctor {

namespace fs = std::filesystem;

namespace {

/// Below this the next line of output may not fit.
constexpr std::uint64_t full_below = 4u << 20;
constexpr std::uint64_t wanted_for_logs = 256u << 20;
constexpr std::uint64_t wanted_for_checkpoints = 4ull << 30;

/// Access rights alone do not tell about read-only mounts, quotas and root on NFS.
std::string why_no_file(const fs::path& directory) {
  auto path = (directory / ".troupe-doctor-XXXXXX").string();
  const int file = ::mkstemp(path.data());
  if (file < 0)
    return os::system_message(errno);
  ::close(file);
  ::unlink(path.c_str());
  return {};
}

place_facts look_at(std::string subject, const std::string& path, std::string option,
                    std::uint64_t wanted) {
  place_facts seen{std::move(subject), path, std::move(option)};
  seen.wanted = wanted;
  std::error_code unknown;
  auto there = fs::absolute(path, unknown);
  seen.is_there = fs::exists(there, unknown);
  // The launcher makes what is missing.
  while (!fs::exists(there, unknown) && there.has_relative_path())
    there = there.parent_path();
  seen.why_not = fs::is_directory(there, unknown)
                     ? why_no_file(there)
                     : fmt::format("{} is no directory", there.string());
  struct statvfs about {};
  if (::statvfs(there.c_str(), &about) == 0)
    seen.available = std::uint64_t{about.f_bavail} * about.f_frsize;
  return seen;
}

std::string folder_of(const std::string& file) {
  const auto folder = fs::path(file).parent_path().string();
  return folder.empty() ? "." : folder;
}

} // namespace

finding judge(const place_facts& seen) {
  finding f{seen.subject};
  const bool checkpoints = seen.wanted == wanted_for_checkpoints;
  if (!seen.why_not.empty()) {
    f.how = grade::error;
    f.found = fmt::format("no file can be made in {}: {}", seen.path, seen.why_not);
    f.costs = checkpoints ? "no step is saved" : "the launcher ends";
  } else {
    f.found = fmt::format("{}{}, {} free", seen.path, seen.is_there ? "" : " (not there yet)",
                          os::in_words(seen.available));
    if (seen.available >= seen.wanted)
      return f;
    f.how = seen.available < full_below ? grade::error : grade::warning;
    f.costs = checkpoints ? "a step that does not fit is not saved, and training goes on"
                          : "workers whose output does not fit end or lose it";
  }
  f.remedy = fmt::format("{} names another directory", seen.option);
  if (seen.why_not.empty())
    f.remedy = "free space, or " + seen.option + " with another directory";
  return f;
}

findings judge(const std::vector<place_facts>& seen) {
  findings all;
  for (const auto& place : seen)
    all.push_back(judge(place));
  return all;
}

std::vector<place_facts> look_at_places(const doctor_options& o) {
  std::vector<place_facts> all;
  const auto& job = o.job;
  std::error_code unknown;
  const bool own_directory = !job.streams.log_dir.empty() && job.streams.log_dir != "/dev/null";
  if (own_directory)
    all.push_back(look_at("log directory", job.streams.log_dir, "--log-dir", wanted_for_logs));
  else
    all.push_back(look_at("temporary files", fs::temp_directory_path(unknown),
                          "TMPDIR (or --log-dir)", wanted_for_logs));
  if (!job.journal.empty() && !config_map_of(job.journal))
    all.push_back(look_at("journal", folder_of(job.journal), "--journal", wanted_for_logs));
  if (!job.outcome_file.empty())
    all.push_back(look_at("outcome file", folder_of(job.outcome_file), "--outcome-file", 0));
  if (!job.common.json_log.empty())
    all.push_back(
        look_at("JSON log", folder_of(job.common.json_log), "--json-log", wanted_for_logs));
  if (!o.checkpoints.empty())
    all.push_back(look_at("checkpoints", o.checkpoints, "--checkpoints", wanted_for_checkpoints));
  return all;
}

} // namespace troupe::launch::doctor
