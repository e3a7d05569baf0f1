#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::launch {

/// A worker that failed, on whichever node.
struct worker_failure {
  std::string node, host;
  std::uint32_t rank = 0, local_rank = 0;
  std::int32_t pid = 0; ///< 0: it was not started
  std::int32_t exit_code = 0;
  std::string message, traceback, error_file;
  std::int64_t unix_time_ms = 0;
  std::string exit_class;   ///< only one that the exit code does not tell
  std::string matched_line; ///< the line by which it was known, if by one
  std::string log_tail;     ///< the end of its stderr, if that is a file; of some only
};

/// Everything that failed in the job's last generation, root cause first: what the verdict names,
/// and what failed on this node after the master had made up its mind.
std::vector<worker_failure>
all_failures(const std::optional<messages::msg<messages::Conclude>>& verdict,
             const std::optional<messages::msg<messages::Failed>>& own);

/// The end of a failed job, in the form of torch's ChildFailedError, for people and for the tools
/// that look for it: the root cause is the last block. `what` is the script's name; `reason` stands
/// in the place of failures if there are none. `checkpoint`: what training can go on from, in
/// words; empty: unknown.
std::string failure_summary(const std::string& what, const std::vector<worker_failure>& failures,
                            const std::string& reason, const std::string& checkpoint = {});

/// What a shell would say of the process that failed first: its exit code, 128 + n for signal n,
/// and 1 if there was none.
int exit_code_of(const messages::msg<messages::Conclude>& verdict);

} // namespace troupe::launch
