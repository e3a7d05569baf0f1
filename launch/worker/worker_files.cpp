#include "launch/worker/worker_files.hpp"

#include "launch/options/macros.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::launch {

namespace {

constexpr auto nowhere = "/dev/null";
/// No output that the user has asked to keep: the directory goes when the job has ended.
constexpr auto copy_of_stderr = "stderr.copy";

std::string prefix_of(const output_contract& c, const actors::assignment& a) {
  if (c.streams.prefix_template.empty())
    return fmt::format("[{}{}]:", c.role, a.local);
  return substituted(c.streams.prefix_template, {{"role_name", c.role},
                                                 {"local_rank", std::to_string(a.local)},
                                                 {"rank", std::to_string(a.rank)},
                                                 {"hostname", c.host},
                                                 {"node", c.node},
                                                 {"time", "${time}"}}); // the line's own
}

std::string filtered_file(const std::string& attempt, const char* stream) {
  return fmt::format("{}/filtered_{}.log", attempt, stream);
}

} // namespace

worker_files files_of(const output_contract& c, const actors::assignment& a) {
  worker_files f;
  const bool seen = !c.streams.shown || c.streams.shown->count(a.local) != 0;
  if (!seen)
    f.stdout_file = f.stderr_file = nowhere;
  if (c.run_directory.empty())
    return f;
  f.attempt = fmt::format("{}/attempt_{}", c.run_directory, a.restart_count);
  f.directory = fmt::format("{}/{}", f.attempt, a.local);
  f.error_file = f.directory + "/error.json";
  const auto tee = c.streams.tee.of(a.local);
  const auto to_file = c.streams.redirects.of(a.local) | tee;
  if (to_file.out)
    f.stdout_file = f.directory + "/stdout.log";
  if (to_file.err)
    f.stderr_file = f.directory + "/stderr.log";
  const auto show = [&](const std::string& file, ports::console_stream to, const char* name,
                        const std::vector<std::string>& words) {
    f.shown.push_back({file, to, prefix_of(c, a), words, filtered_file(f.attempt, name)});
  };
  if (seen && !to_file.err && c.keeps_end_of_stderr) {
    f.stderr_file = f.directory + "/" + copy_of_stderr;
    f.shown.push_back({f.stderr_file, ports::console_stream::err, "", {}, "", nullptr, true});
  }
  if (seen && tee.out)
    show(f.stdout_file, ports::console_stream::out, "stdout", c.streams.duplicate_stdout);
  if (seen && tee.err)
    show(f.stderr_file, ports::console_stream::err, "stderr", c.streams.duplicate_stderr);
  return f;
}

std::vector<std::string> filtered_files(const output_contract& c, const std::string& attempt) {
  std::vector<std::string> files;
  if (!c.streams.duplicate_stdout.empty())
    files.push_back(filtered_file(attempt, "stdout"));
  if (!c.streams.duplicate_stderr.empty())
    files.push_back(filtered_file(attempt, "stderr"));
  return files;
}

} // namespace troupe::launch
