#include "runtime/os/process/launch_plan.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>

namespace troupe::os {

namespace {

constexpr std::string_view default_path = "/usr/local/bin:/usr/bin:/bin";

/// Why a file cannot be executed; 0 if it can. EISDIR for a directory.
int obstacle(int directory, const std::string& path) {
  struct stat found {};
  if (::fstatat(directory, path.c_str(), &found, 0) != 0)
    return errno;
  if (S_ISDIR(found.st_mode))
    return EISDIR;
  if (!S_ISREG(found.st_mode))
    return EACCES;
  return ::faccessat(directory, path.c_str(), X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

std::string_view path_of(const std::vector<std::string>& environment) {
  constexpr std::string_view name = "PATH=";
  for (const std::string& entry : environment)
    if (entry.compare(0, name.size(), name) == 0)
      return std::string_view(entry).substr(name.size());
  return default_path;
}

tl::unexpected<error> cannot_execute(const std::string& program, int obstacle_found) {
  switch (obstacle_found) {
  case EISDIR:
    return failure(errc::invalid, fmt::format("program '{}' is a directory", program));
  case ENOENT:
    return failure(errc::invalid, fmt::format("program '{}' does not exist", program));
  case EACCES:
    return failure(errc::invalid, fmt::format("program '{}' is not executable", program));
  default:
    return failure(errc::invalid, fmt::format("program '{}' cannot be executed: {}", program,
                                              system_message(obstacle_found)));
  }
}

result<std::string> find_program(int directory, const std::string& name, std::string_view path) {
  if (name.find('/') != std::string::npos) {
    if (const int found = obstacle(directory, name))
      return cannot_execute(name, found);
    return name;
  }
  // As execvp does: a file that may not be executed does not end the search, but is worth telling
  // if nothing better comes.
  std::optional<error> first_hit;
  for (std::string_view rest = path;;) {
    const auto colon = rest.find(':');
    const auto place = rest.substr(0, colon);
    const auto candidate = fmt::format("{}/{}", place.empty() ? "." : place, name);
    const int found = obstacle(directory, candidate);
    if (found == 0)
      return candidate;
    if (!first_hit && found != ENOENT && found != ENOTDIR)
      first_hit = cannot_execute(candidate, found).value();
    if (colon == std::string_view::npos)
      break;
    rest.remove_prefix(colon + 1);
  }
  if (first_hit)
    return tl::make_unexpected(*first_hit);
  return failure(errc::invalid, fmt::format("program '{}' was not found in PATH ({})", name, path));
}

/// Opens at a number above the standard streams, so that moving one onto another's place cannot
/// overwrite a third.
result<unique_fd> open_output(const std::string& path) {
  constexpr mode_t permissions = 0666;
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOCTTY;
  unique_fd opened(::open(path.c_str(), flags, permissions));
  unique_fd moved(opened ? ::fcntl(opened.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : -1);
  if (!moved)
    return failure(errc::invalid, fmt::format("log file '{}': {}", path, system_message(errno)));
  return moved;
}

result<void> open_outputs(const ports::process_spec& spec, launch_plan& plan) {
  if (!spec.stdout_file.empty()) {
    auto out = open_output(spec.stdout_file);
    if (!out)
      return tl::make_unexpected(out.error());
    plan.out = std::move(*out);
  }
  if (spec.stderr_file.empty())
    return {};
  auto err = open_output(spec.stderr_file);
  if (!err)
    return tl::make_unexpected(err.error());
  plan.err = std::move(*err);
  return {};
}

} // namespace

std::string system_message(int error_number) {
  return std::generic_category().message(error_number);
}

result<launch_plan> launch_plan::make(const ports::process_spec& spec) {
  if (spec.argv.empty() || spec.argv[0].empty())
    return failure(errc::invalid, "no program was given");
  launch_plan plan;
  if (!spec.working_directory.empty()) {
    unique_fd opened(::open(spec.working_directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!opened)
      return failure(errc::invalid, fmt::format("working directory '{}': {}",
                                                spec.working_directory, system_message(errno)));
    plan.directory = std::move(opened);
  }
  auto program = find_program(plan.directory ? plan.directory->get() : AT_FDCWD, spec.argv[0],
                              path_of(spec.environment));
  if (!program)
    return tl::make_unexpected(program.error());
  plan.program = std::move(*program);
  if (auto opened = open_outputs(spec, plan); !opened)
    return tl::make_unexpected(opened.error());
  return plan;
}

} // namespace troupe::os
