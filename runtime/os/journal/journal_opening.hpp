#pragma once

#include "messages/msg.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Whether a master may take up a journal that it finds, and what it takes from it.
///
/// A journal outlives its master on purpose: the next one goes on with the same job. The next run
/// of the job, or another job, must not: it would hear the old verdict and end before it has begun.
/// So a journal knows its job, and the run that wrote to it last.
namespace troupe::os {

struct journal_owner {
  /// The job's id; empty for a job without a name of its own.
  std::string job;
  /// The run, where something outlives a crashed master and can tell: a launcher's keeper. Nothing:
  /// nothing tells whether a new master is the old one's successor or the next run.
  std::optional<std::uint64_t> run = {};
  /// The identity of the job where a cluster gives it one, which no other job of its name ever has:
  /// all masters of one are of one run. Empty: it has none.
  std::string uid = {};
};

/// What earlier masters have left.
struct journal_past {
  /// Nothing: it is of version 1 and does not say.
  std::optional<std::string> job;
  std::optional<std::uint64_t> run;
  std::vector<messages::any_msg> records;
  /// Records at the end that were there once.
  std::uint64_t missing = 0;
  std::string uid = {}; ///< empty: it does not say
};

struct journal_opening {
  /// The records say nothing to this run: the journal begins anew, under the next term.
  bool anew = false;
  /// What the user should know of it.
  std::vector<log::event> notices;
};

/// `refused`, with one line, if it is another job's.
result<void> check_owner(const std::string& path, const std::optional<std::string>& job,
                         const journal_owner& mine);

/// Of a journal that passed check_owner().
journal_opening open_over(const std::string& path, const journal_past& past,
                          const journal_owner& mine, term as);

} // namespace troupe::os
