// What recovery_core does about a failure once it is judged: the budgets, the next generation, the
// verdict.

#include "actors/master/recovery/recovery_core.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

using namespace messages;

// ---- budgets ----

void recovery_core::part_with_node(effects& out) {
  phase_ = phase::parting;
  const auto cause = root_cause_in_words();
  instruct_reform(out, cause, failures_.front().node);
  out.push_back(note{{log::level::story,
                      "parting_with_node",
                      fmt::format("{}; the group starts again without node {}, if it can be spared",
                                  cause, failures_.front().node),
                      {{"generation", static_cast<std::int64_t>(current_.value)},
                       {"node", failures_.front().node},
                       {"cause", cause}}}});
}

std::uint32_t recovery_core::without_progress() const {
  const bool progressed = failures_.front().shown_at - works_since_ >= options_.progress_after;
  return progressed ? 0 : without_progress_ + 1;
}

void recovery_core::charge(effects& out, instant now) {
  const auto used = charges_.find(failures_.front().node);
  const auto charged = used == charges_.end() ? 0 : used->second;
  const bool stuck =
      options_.without_progress_max && without_progress() >= *options_.without_progress_max;
  if (charged < options_.max_restarts && !stuck)
    return restart_charged(out, root_cause_in_words());
  phase_ = phase::settling;
  settled_at_ = now + options_.settle;
  conclude_if_settled(out, now);
}

/// When every member has ended, or had time enough for that.
void recovery_core::conclude_if_settled(effects& out, instant now) {
  const auto has_ended = [this](const node_name& node) {
    return finished_.count(node) != 0 || ended_.count(node) != 0;
  };
  if (now < settled_at_ && !std::all_of(members_.begin(), members_.end(), has_ended))
    return;
  const auto cause = root_cause_in_words();
  const auto fruitless = without_progress();
  if (options_.without_progress_max && fruitless >= *options_.without_progress_max)
    return conclude(
        out, false,
        fmt::format("{}; {} generation{} in a row failed within {} of the start, which is no "
                    "progress (--no-progress-limit)",
                    cause, fruitless, fruitless == 1 ? "" : "s",
                    troupe::in_words(options_.progress_after)),
        limits::exit_no_progress);
  const auto whose = members_.size() > 1 ? " of node " + failures_.front().node : "";
  const auto budget = options_.max_restarts == 0
                          ? std::string("no restarts are allowed (--max-restarts 0)")
                          : fmt::format("all {} restarts{} are used up (--max-restarts)",
                                        options_.max_restarts, whose);
  conclude(out, false, fmt::format("{}; {}", cause, budget));
}

// ---- the next generation ----

void recovery_core::restart(effects& out, const std::string& cause) {
  phase_ = phase::reforming;
  instruct_reform(out, cause);
  out.push_back(note{{log::level::story,
                      "restarting",
                      fmt::format("{}; the group starts again (free of charge)", cause),
                      {{"generation", static_cast<std::int64_t>(current_.value)},
                       {"cause", cause},
                       {"restart_count", static_cast<std::int64_t>(restart_count_)}}}});
}

void recovery_core::restart_charged(effects& out, const std::string& cause) {
  phase_ = phase::reforming;
  const auto& root = failures_.front();
  ++restart_count_;
  const auto charged = ++charges_[root.node];
  without_progress_ = without_progress();
  out.push_back(record{author_
                           .write<RestartCharged>(current_,
                                                  [&](auto b) {
                                                    b.setGeneration(current_.value);
                                                    b.setRestartCount(restart_count_);
                                                    b.setNode(root.node);
                                                    b.setWithoutProgress(without_progress_);
                                                    write_failures(b.initFailures(
                                                        static_cast<unsigned>(failures_.size())));
                                                  })
                           .any()});
  instruct_reform(out, cause);
  const auto whose = members_.size() > 1 ? " of node " + root.node : "";
  out.push_back(note{{log::level::story,
                      "restarting",
                      fmt::format("{}; the group starts again (restart {} of {}{})", cause, charged,
                                  options_.max_restarts, whose),
                      {{"generation", static_cast<std::int64_t>(current_.value)},
                       {"cause", cause},
                       {"exit_class", std::string(treatment_of(root.judged.which).name)},
                       {"restart_count", static_cast<std::int64_t>(restart_count_)}}}});
}

void recovery_core::instruct_reform(effects& out, const std::string& cause,
                                    const node_name& without) {
  out.push_back(instruct{author_
                             .write<Reform>(current_,
                                            [&](auto b) {
                                              b.setReason(cause);
                                              b.setRestartCount(restart_count_);
                                              b.setWithout(without);
                                            })
                             .any()});
}

// ---- the verdict ----

void recovery_core::conclude(effects& out, bool success, const std::string& reason,
                             std::uint8_t exit_code) {
  phase_ = phase::concluded;
  out.push_back(record{author_
                           .write<Concluded>(current_,
                                             [&](auto b) {
                                               b.setSuccess(success);
                                               b.setReason(reason);
                                               b.setExitCode(exit_code);
                                             })
                           .any()});
  out.push_back(note{{success ? log::level::story : log::level::error,
                      "job_concluded",
                      success ? "the job has finished: " + reason : "the job has failed: " + reason,
                      {{"success", success}, {"reason", reason}}}});
  announce_verdict(out, {success, reason, exit_code});
}

void recovery_core::announce_verdict(effects& out, const verdict& v) {
  out.push_back(instruct{author_
                             .write<Conclude>(current_,
                                              [&](auto b) {
                                                b.setSuccess(v.success);
                                                b.setReason(v.reason);
                                                b.setExitCode(v.exit_code);
                                                write_failures(b.initFailures(
                                                    static_cast<unsigned>(failures_.size())));
                                              })
                             .any()});
  out.push_back(v);
}

} // namespace troupe::actors
