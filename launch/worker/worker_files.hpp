#pragma once

#include "actors/node_supervisor/training_program.hpp"
#include "launch/options/streams.hpp"
#include "runtime/ports/console.hpp"

#include <string>
#include <vector>

/// Which files one worker writes to, and which of them are shown on the console. Pure; torchrun's
/// layout: `<run directory>/attempt_<restart count>/<local
/// rank>/{stdout.log,stderr.log,error.json}` and `attempt_<n>/filtered_{stdout,stderr}.log`.
namespace troupe::launch {

/// What is the same for all workers of this launcher.
struct output_contract {
  stream_options streams;
  std::string role = "default";
  std::string host;
  /// `<log dir>/<job>_<random>`; empty when the user asked for no files (--log-dir /dev/null).
  std::string run_directory;
  std::string node; ///< its name in the job
  /// Where a worker's stderr goes to the console: whether the end of it is kept, for the case that
  /// the worker fails.
  bool keeps_end_of_stderr = false;
};

struct worker_files {
  std::string attempt;   ///< directory; empty if there are no files at all
  std::string directory; ///< of this worker
  /// As in ports::process_spec: empty is the launcher's own stream.
  std::string stdout_file, stderr_file;
  std::string error_file;
  std::vector<ports::relayed_file> shown;
};

worker_files files_of(const output_contract& c, const actors::assignment& a);

/// The files that lines with one of the user's words go to; made even if none ever does.
std::vector<std::string> filtered_files(const output_contract& c, const std::string& attempt);

} // namespace troupe::launch
