// How long membership_core keeps the master after the verdict: until the nodes have left.

#include "actors/limits.hpp"
#include "actors/master/membership/membership_core.hpp"
#include "runtime/base/limits.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

/// Said at once if there is nothing to wait for: the master of a job on one node must not stand
/// around after the verdict.
membership_core::effects membership_core::job_over(instant now) {
  effects out;
  job_over_ = true;
  extend_farewell(now, longest_stop_);
  farewell_.begin(now);
  tell_if_everyone_left(out, now);
  return out;
}

/// A node ends its workers, has their last snapshots written and says goodbye. Its saver needs the
/// master for that: only the master can say that a step is complete.
/// Without this wait a master left while nodes still saved, and the last step of the job, or the
/// one of a breakpoint, was never completed. Never shortened: a node that comes late adds its own
/// time.
void membership_core::extend_farewell(instant now, duration stop_within) {
  farewell_until_ =
      std::max(farewell_until_, now + stop_within + limits::kill_within +
                                    limits::last_saves_within + limits::farewell_within);
}

/// Called wherever a node may have been the last. Said once, since whatever runs the master ends it
/// on that.
void membership_core::tell_if_everyone_left(effects& out, instant now) {
  if (!job_over_ || told_that_everyone_left_)
    return;
  // Of a later master: nodes that knew an earlier one may not have found it yet, and would dial in
  // vain until their own time is over.
  // The earlier node of a name that passes on still ends its workers, and saves.
  const bool all_gone = members_.empty() && leaving_.empty() && now >= all_known_at_;
  TROUPE_RARE_IF(members_.empty() && leaving_.empty() && now < all_known_at_,
                 "membership: a restarted master stays for nodes that dial still");
  if (!all_gone && now < farewell_until_)
    return;
  told_that_everyone_left_ = true;
  farewell_.end();
  // The user has to know that saves may be missing, and of which node.
  if (!members_.empty())
    out.push_back(note{{log::level::warning,
                        "nodes_left_behind",
                        fmt::format("{} node(s) have not left in time after the end of the job, {} "
                                    "first; the master ends without them. What they still save may "
                                    "stay incomplete",
                                    members_.size(), members_.begin()->first),
                        {{"nodes", static_cast<std::int64_t>(members_.size())}}}});
  out.push_back(everyone_left{});
}

/// The user sees a program that does not end.
/// It may wait for minutes, and looks as if it hung after it has told the verdict.
void membership_core::remind_of_farewell(effects& out, instant now) {
  if (!farewell_.due(now) || members_.empty())
    return;
  out.push_back(note{{log::level::notice,
                      "waiting_for_nodes",
                      fmt::format("the job is over; waiting for {} node(s), {} first, to end their "
                                  "workers and complete their last saves: at most {} more",
                                  members_.size(), members_.begin()->first,
                                  troupe::in_words(farewell_until_ - now)),
                      {{"nodes", static_cast<std::int64_t>(members_.size())}}}});
}

/// Each wait here has an end of its own: a node's return, a leaver's workers, the farewell, and
/// what is said to the user meanwhile.
std::optional<instant> membership_core::next_wakeup() const {
  std::optional<instant> first;
  if (!due_.empty())
    first = due_.begin()->first;
  for (const auto& [node, who] : leaving_)
    first = first ? std::min(*first, who.until) : who.until;
  if (job_over_ && !told_that_everyone_left_) {
    // With a node that is here, or on its way out, only their time counts: the end of
    // `all_known_at_` changes nothing then.
    const bool waits_for_none = members_.empty() && leaving_.empty();
    auto farewell = waits_for_none ? all_known_at_ : farewell_until_;
    if (const auto reminding = farewell_.next(); reminding && !members_.empty())
      farewell = std::min(farewell, *reminding);
    first = first ? std::min(*first, farewell) : farewell;
  }
  return first;
}

} // namespace troupe::actors
