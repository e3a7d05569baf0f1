#include "launch/shell/set_command.hpp"

#include "launch/shell/terminal.hpp"
#include "launch/wiring/program.hpp"
#include "launch/wiring/tuning_file.hpp"
#include "runtime/os/contents_of.hpp"
#include "runtime/os/entries_of.hpp"
#include "runtime/os/log/printable.hpp"
#include "runtime/os/process/unique_fd.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::launch {

namespace fs = std::filesystem;

namespace {

/// Every worker of a launcher has this one.
constexpr auto workers_variable = "TROUPE_GENERATION", id_variable = "TORCHELASTIC_RUN_ID";

std::map<std::string, std::string> environment_of(const fs::path& process) {
  struct stat seen {};
  if (::stat(process.c_str(), &seen) != 0 || seen.st_uid != ::geteuid())
    return {};
  std::map<std::string, std::string> all;
  const auto text = os::contents_of(process / "environ");
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\0', at), text.size());
    const auto entry = std::string_view(text).substr(at, end - at);
    if (const auto equals = entry.find('='); equals != std::string_view::npos)
      all.emplace(entry.substr(0, equals), entry.substr(equals + 1));
    at = end + 1;
  }
  return all;
}

result<std::string> file_meant(const shell_options& o) {
  if (!o.settings_file.empty())
    return o.settings_file;
  const auto found = tuning_files();
  if (found.size() == 1)
    return found.begin()->first;
  if (found.empty())
    return failure(errc::absent, "no worker of yours on this machine has a file of settings: start "
                                 "the job with --auto_tunning, or name the file (--file)");
  std::vector<std::string> lines;
  for (const auto& [file, job] : found)
    lines.push_back(fmt::format("{} (job {})", os::printable(file), os::printable(job)));
  return failure(errc::invalid, fmt::format("several jobs have a file of settings here; name one "
                                            "(--file): {}",
                                            fmt::join(lines, ", ")));
}

} // namespace

std::map<std::string, std::string> tuning_files(const std::string& proc) {
  std::map<std::string, std::string> found;
  for (const auto& entry : os::entries_of(proc)) {
    const auto environment = environment_of(entry.path());
    const auto file = environment.find(tuning_file_variable);
    const auto job = environment.find(id_variable);
    if (environment.count(workers_variable) != 0 && file != environment.end() &&
        !file->second.empty())
      found.emplace(file->second, job == environment.end() ? std::string() : job->second);
  }
  return found;
}

namespace {

constexpr std::uintmax_t settings_max = 1U << 20U;

/// The whole file at once, with the owner and the rights that it has. A link that another user has
/// put beside it is not followed.
result<void> replace_settings(const fs::path& file, const std::string& text) {
  const auto failed = [&file] {
    return failure(errc::unavailable, fmt::format("{}: {}", file.string(), std::strerror(errno)));
  };
  struct stat before {};
  auto part = file.string() + ".XXXXXX";
  const os::unique_fd to(::mkostemp(part.data(), O_CLOEXEC));
  if (!to)
    return failed();
  const bool written =
      ::stat(file.c_str(), &before) == 0 &&
      ::write(to.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::fchown(to.get(), before.st_uid, before.st_gid) == 0 &&
      ::fchmod(to.get(), before.st_mode & 07777U) == 0 &&
      std::rename(part.c_str(), file.c_str()) == 0;
  if (written)
    return {};
  const auto why = failed();
  ::unlink(part.c_str());
  return why;
}

} // namespace

int set_batch_size(const shell_options& o) {
  const auto file = file_meant(o);
  if (!file)
    return report_error(shell_program, file.error().what, exit_usage);
  const auto shown = os::printable(*file);
  std::error_code unread;
  const auto place = fs::canonical(*file, unread);
  if (unread)
    return report_error(shell_program, fmt::format("not set: {} does not exist", shown),
                        exit_failure);
  if (!fs::is_regular_file(place, unread) || fs::file_size(place, unread) > settings_max)
    return report_error(shell_program, fmt::format("not set: {} is no file of settings", shown),
                        exit_failure);
  const auto change = with_batch_size(os::contents_of(place), *o.batch_size);
  if (!change)
    return report_error(shell_program, fmt::format("not set: {}: {}", shown, change.error().what),
                        exit_failure);
  if (const auto written = replace_settings(place, change->text); !written)
    return report_error(shell_program, "not set: " + os::printable(written.error().what),
                        exit_failure);
  return print(fmt::format(
             "batch size {}{}, version {}, in {}; data loaders take it when they look "
             "there again\n",
             *o.batch_size, change->before > 0 ? fmt::format(" after {}", change->before) : "",
             change->version, shown))
             ? exit_success
             : exit_failure;
}

} // namespace troupe::launch
