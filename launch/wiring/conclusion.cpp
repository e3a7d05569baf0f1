#include "launch/wiring/conclusion.hpp"

#include "launch/worker/error_file.hpp"
#include "launch/worker/limits.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

namespace troupe::launch {

namespace {

/// As the root cause wrote it, if that was here; else from what the verdict tells.
std::string error_file_for(const worker_failure& root, const node_name& node,
                           ports::process_host& files) {
  const auto own = root.node == node
                       ? files.read_small_file(root.error_file, limits::error_file_max)
                       : std::nullopt;
  if (own && read_error_file(*own))
    return with_error_code(*own, root.exit_code);
  // The message begins with how the process ended; an error file tells only why.
  const auto how = ports::to_string({root.exit_code < 0, std::abs(root.exit_code)}) + ": ";
  const auto why = root.message.rfind(how, 0) == 0 ? root.message.substr(how.size()) : root.message;
  return make_error_file(why, root.traceback, root.unix_time_ms, root.exit_code);
}

} // namespace

std::string conclude_failure(const std::string& what, const node_name& node,
                             const actors::node_outcome& outcome, const std::string& checkpoint,
                             const std::map<std::string, std::string>& environment,
                             ports::process_host& files) {
  const auto failures = all_failures(outcome.verdict, outcome.failures);
  const auto text = failure_summary(what, failures, outcome.reason, checkpoint);
  const auto wanted = environment.find("TORCHELASTIC_ERROR_FILE");
  if (wanted == environment.end() || wanted->second.empty() || failures.empty() ||
      failures.front().error_file.empty())
    return text;
  std::ofstream file(wanted->second, std::ios::trunc);
  file << error_file_for(failures.front(), node, files) << std::flush;
  if (file)
    return text;
  return fmt::format("the error file '{}' (TORCHELASTIC_ERROR_FILE) cannot be written\n{}",
                     wanted->second, text);
}

} // namespace troupe::launch
