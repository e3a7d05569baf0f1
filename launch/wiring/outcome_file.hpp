#pragma once

#include "actors/node_supervisor/training/agent/agent_core.hpp"
#include "launch/worker/worker_files.hpp"
#include "runtime/base/result.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace troupe::launch {

/// How the job ended, for a program that started the launcher (`--outcome-file`): one JSON object
///
///   success       bool
///   reason        why it did not succeed
///   generation    the last one this node started workers for; 0 if it never did
///   ranks         the global ranks of its workers then, in order of local rank
///   failures      root cause first: node, rank, local_rank, pid, exit_code (minus the signal's
///                 number), unix_time_ms, message, and error_file, a path on that node or ""
class outcome_file {
 public:
  /// Nothing is written to an empty path.
  explicit outcome_file(std::string path) : path_(std::move(path)) {}

  bool wanted() const { return !path_.empty(); }

  /// A worker is about to be started; from any thread. `error_file` may be empty.
  void assigned(const actors::assignment& a, const std::string& error_file);

  /// How often workers were started here again, for whatever cause.
  std::uint32_t restarts() const;

  /// Whole or not at all.
  result<void> write(const std::string& node, const actors::node_outcome& outcome) const;

 private:
  struct local_place {
    global_rank rank;
    std::string error_file;
  };

  std::string path_;
  mutable std::mutex mutex_;
  generation which_;
  std::uint32_t starts_ = 0;
  std::map<local_rank, local_place> places_;
};

/// `program`, and `outcome` hears of every worker that is about to be started.
actors::training_program heard_by(const std::shared_ptr<outcome_file>& outcome,
                                  const output_contract& output, actors::training_program program);

} // namespace troupe::launch
