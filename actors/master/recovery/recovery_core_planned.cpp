// How recovery_core ends a generation that runs by its own plan.
//
// A stop throws away what was done since the last save. Where the workers know how to end, they are
// asked to, and the generation runs on: it ends by itself when all have saved. Whatever fails
// meanwhile fails it as ever, so that a dead peer, for which the others would wait in their
// collective, costs no waiting.

#include "actors/master/recovery/recovery_core.hpp"

#include <fmt/format.h>

namespace troupe::actors {

using namespace messages;

/// One plan at a time: what comes meanwhile is looked at when the next world is formed.
void recovery_core::end_as_planned(effects& out, instant now, const std::string& reason) {
  if (planned_)
    return;
  if (!sizes_.planned_end)
    return stop_as_planned(out, now, reason);
  planned_.emplace(now, reason, *sizes_.planned_end);
  out.push_back(
      note{{log::level::notice,
            "end_wanted",
            fmt::format("{}; the workers are asked to save and end, within {}", reason,
                        troupe::in_words(sizes_.planned_end->within)),
            {{"generation", static_cast<std::int64_t>(current_.value)}, {"reason", reason}}}});
  std::vector<node_name> members;
  for (const auto& [node, which] : members_)
    members.push_back(node);
  ask_to_end(out, std::move(members));
}

/// Also of a member that is back: the first one may have been lost with its link.
void recovery_core::ask_to_end(effects& out, std::vector<node_name> members) {
  if (!planned_ || phase_ != phase::running)
    return;
  const auto wish =
      author_.write<EndWanted>(current_, [&](auto b) { b.setReason(planned_->reason()); });
  out.push_back(direct{std::move(members), wish.any()});
}

/// The reason is kept for the judgement: an end without a failure and without a reason is a bug.
void recovery_core::stop_as_planned(effects& out, instant now, const std::string& reason) {
  stopped_for_ = reason;
  out.push_back(stop_generation{current_, reason});
  become_ending(now);
}

/// Workers of one node that cannot be asked are not waited for, and neither are the others: all end
/// together or not at all.
recovery_core::effects recovery_core::end_answer(instant now, const msg<EndAnswer>& m) {
  effects out;
  if (!about_current(m.any()) || phase_ != phase::running || !planned_)
    return out;
  if (m.read()->getBegun()) {
    planned_->begun();
  } else {
    TROUPE_RARE("planner: workers cannot be asked to end, and are stopped");
    out.push_back(note{{log::level::info,
                        "end_not_possible",
                        fmt::format("the workers of node {} have no handler for the signal that "
                                    "asks them to end (yet): stopping them",
                                    m.read()->getNode().cStr()),
                        {{"node", std::string(m.read()->getNode().cStr())}}}});
    stop_as_planned(out, now, planned_->reason());
  }
  check();
  return out;
}

/// A plan of which this planner may not know: the node leaves, or an earlier master has asked. The
/// others end along with it; that they do is seen to as if they had been asked from here.
void recovery_core::take_asked(effects& out, instant now, const node_name& node) {
  asked_to_end_ = true;
  if (phase_ == phase::running && finished_.size() < members_.size())
    end_as_planned(out, now, fmt::format("the workers of node {} have saved and ended", node));
}

/// Nothing has failed and nothing is counted. An exit with 0 says only that they did as they were
/// asked, and not that the work is done.
void recovery_core::as_planned(effects& out, instant now) {
  TROUPE_RARE("planner: all workers have saved and ended as they were asked to");
  restart_free(out, now, planned_ ? planned_->reason() : "its workers were asked to save and end",
               "planned");
  become_gathering(out, now);
}

std::optional<instant> recovery_core::planned_end_due() const {
  if (!planned_ || phase_ != phase::running)
    return std::nullopt;
  return planned_->until();
}

void recovery_core::consider_planned_end(effects& out, instant now) {
  const auto due = planned_end_due();
  if (!due || now < *due)
    return;
  TROUPE_RARE("planner: workers that were asked to end do not, and are stopped");
  const auto& within = *sizes_.planned_end;
  out.push_back(
      note{{log::level::warning,
            "end_overdue",
            planned_->has_begun()
                ? fmt::format("not all workers have ended within {} of being asked "
                              "(--graceful-within): stopping them",
                              troupe::in_words(within.within))
                : fmt::format("no worker has ended or saved within {} of being asked "
                              "(--graceful-save-within): stopping them",
                              troupe::in_words(std::min(within.begin_within, within.within))),
            {{"generation", static_cast<std::int64_t>(current_.value)}}}});
  stop_as_planned(out, now, planned_->reason());
}

} // namespace troupe::actors
