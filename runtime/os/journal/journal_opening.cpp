#include "runtime/os/journal/journal_opening.hpp"

#include "messages/kinds.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::os {

namespace {

std::string job_in_words(const std::string& job) {
  return job.empty() ? "a job without a name" : fmt::format("job '{}'", job);
}

/// What the verdict was, if the job has concluded, and whether all nodes were told.
struct conclusion {
  bool success = false;
  std::string reason;
  bool farewell_ended = false;
};

std::optional<conclusion> conclusion_of(const std::vector<messages::any_msg>& records) {
  std::optional<conclusion> found;
  for (const auto& r : records) {
    if (r.is<messages::Concluded>() && !found) {
      auto verdict = r.as<messages::Concluded>().read();
      found = conclusion{verdict->getSuccess(), verdict->getReason().cStr()};
    } else if (r.is<messages::FarewellEnded>() && found) {
      found->farewell_ended = true;
    }
  }
  return found;
}

bool same_run(const journal_past& past, const journal_owner& mine) {
  return (mine.run && past.run == mine.run) || (!mine.uid.empty() && past.uid == mine.uid);
}

bool is_of_a_namesake(const journal_past& past, const journal_owner& mine) {
  return !mine.uid.empty() && !past.uid.empty() && past.uid != mine.uid;
}

log::event notice(log::level severity, const char* name, const std::string& path, term as,
                  const std::string& text) {
  return {severity,
          name,
          fmt::format("journal '{}': {}", path, text),
          {{"journal", path}, {"epoch", static_cast<std::int64_t>(as.value)}}};
}

} // namespace

result<void> check_owner(const std::string& path, const std::optional<std::string>& job,
                         const journal_owner& mine) {
  if (!job || *job == mine.job)
    return {};
  return failure(
      errc::refused,
      fmt::format("journal '{}': it belongs to {}, and this is {} (--rdzv-id); nothing in "
                  "it was changed. Each job needs a journal of its own (--journal)",
                  path, job_in_words(*job), job_in_words(mine.job)));
}

journal_opening open_over(const std::string& path, const journal_past& past,
                          const journal_owner& mine, term as) {
  journal_opening out;
  if (past.missing > 0)
    out.notices.push_back(
        notice(log::level::warning, "journal_shortened", path, as,
               fmt::format("its last {} record(s) are gone (a power cut, or a damaged disk): this "
                           "master does not know what was decided then. Nodes that still train say "
                           "so; restarts may be counted too low",
                           past.missing)));
  if (past.records.empty())
    return out;
  if (is_of_a_namesake(past, mine)) {
    out.anew = true;
    out.notices.push_back(notice(log::level::notice, "journal_begun_anew", path, as,
                                 "an earlier job of this name, which was deleted, has left it; "
                                 "this one begins anew"));
    return out;
  }
  const auto ended = conclusion_of(past.records);
  if (!ended) {
    if (!same_run(past, mine))
      out.notices.push_back(notice(log::level::notice, "journal_taken_up", path, as,
                                   "an earlier master has left it; going on with its job"));
    return out;
  }
  const auto verdict =
      fmt::format("{} ({})", ended->success ? "succeeded" : "failed", ended->reason);
  // A successor within the run tells the verdict again, whatever had come of that before.
  if (same_run(past, mine) || (!mine.run && !ended->farewell_ended)) {
    out.notices.push_back(
        notice(log::level::notice, "verdict_recalled", path, as,
               mine.uid.empty()
                   ? fmt::format("the job has {} already, and its master ended before all nodes "
                                 "had heard it; telling those that ask. A new run begins with the "
                                 "next start",
                                 verdict)
                   : fmt::format("the job has {} already; telling those that ask", verdict)));
    return out;
  }
  out.anew = true;
  out.notices.push_back(notice(log::level::notice, "journal_begun_anew", path, as,
                               fmt::format("the run before has {}; this is a new run", verdict)));
  return out;
}

} // namespace troupe::os
