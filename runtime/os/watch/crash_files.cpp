#include "runtime/os/watch/crash_files.hpp"

#include "diag/stacks/dump_file.hpp"
#include "diag/stacks/fault_place.hpp"
#include "runtime/base/result.hpp"
#include "runtime/os/stacks/dump_text.hpp"
#include "runtime/os/whole_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace troupe::os {

namespace fs = std::filesystem;

namespace {

/// Answers the file for people.
result<std::string> keep(const fs::path& where, const diag::process_stacks& stacks) {
  std::error_code error;
  fs::create_directories(where, error);
  if (error)
    return failure(errc::unavailable, fmt::format("{}: {}", where.string(), error.message()));
  const auto merged = where / diag::dump_file_name({stacks.rank, stacks.world_size});
  auto shown = merged;
  shown.replace_extension(".txt");
  for (const auto& [path, bytes] :
       {std::pair(merged, diag::dump_of({stacks})), std::pair(shown, text_of(stacks))})
    if (const auto written = write_whole(path, bytes); !written)
      return tl::make_unexpected(written.error());
  return shown.string();
}

const diag::thread_stacks* thread_of(const diag::process_stacks& stacks, std::int32_t id) {
  const auto found =
      std::find_if(stacks.threads.begin(), stacks.threads.end(), [id](const auto& t) {
        return id > 0 && t.id == static_cast<std::uint64_t>(id);
      });
  return found == stacks.threads.end() ? nullptr : &*found;
}

} // namespace

std::vector<diag::crash_report> keep_crashes(const std::string& directory, std::uint64_t generation,
                                             const std::vector<diag::crashed_process>& processes,
                                             diag::dump_result read, duration within) {
  std::vector<diag::crash_report> all;
  for (const auto& p : processes) {
    diag::crash_report report;
    report.rank = p.rank;
    const auto stacks = std::find_if(read.stacks.begin(), read.stacks.end(), [&p](const auto& s) {
      return s.pid == static_cast<std::uint64_t>(p.pid);
    });
    if (stacks == read.stacks.end()) {
      report.why = fmt::format("they did not come within {}", in_words(within));
    } else {
      stacks->rank = p.rank;
      stacks->world_size = p.world_size;
      if (const auto* hit = thread_of(*stacks, p.thread))
        report.place = diag::fault_place(*hit);
      const auto kept = directory.empty()
                            ? failure(errc::unavailable, "there is no directory for them")
                            : keep(fmt::format("{}/fatal/{}", directory, generation), *stacks);
      if (kept)
        report.file = *kept;
      else
        report.why = kept.error().what;
    }
    all.push_back(std::move(report));
  }
  return all;
}

} // namespace troupe::os
