#include "actors/master/recovery/recovery_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

using namespace messages;

recovery_core::recovery_core(recovery_options options, messages::author author)
    : options_(std::move(options)), author_(std::move(author)) {}

// ---- events ----

recovery_core::effects recovery_core::recall(instant now, const std::vector<any_msg>& history) {
  effects out;
  for (const auto& entry : history) {
    out.clear();
    if (entry.is<GenerationSealed>()) {
      become_watching(now, entry.as<GenerationSealed>().read()->getWorld());
      sealed_at_.reset();
      // Nobody has a link yet; each member's return says how it is.
      for (const auto& node : members_)
        away_.emplace(node, std::nullopt);
    } else if (entry.is<GenerationProposed>()) {
      phase_ = phase::waiting;
    } else if (entry.is<RestartCharged>()) {
      auto charged = entry.as<RestartCharged>().read();
      restart_count_ = charged->getRestartCount();
      without_progress_ = charged->getWithoutProgress();
      ++charges_[charged->getNode().cStr()];
      phase_ = phase::reforming;
      instruct_reform(out, "a failure that an earlier master has charged already");
    } else if (entry.is<Concluded>()) {
      auto recorded = entry.as<Concluded>().read();
      phase_ = phase::concluded;
      announce_verdict(
          out, {recorded->getSuccess(), recorded->getReason().cStr(), recorded->getExitCode()});
      break;
    }
  }
  return out;
}

recovery_core::effects recovery_core::sealed(instant now, const msg<Sealed>& m) {
  if (phase_ == phase::concluded)
    return {};
  become_watching(now, m.read()->getWorld());
  return {};
}

recovery_core::effects recovery_core::running(instant now, const msg<Running>& m) {
  effects out;
  if (phase_ != phase::watching || m.envelope().about != current_)
    return out;
  take_started(out, now, m.read()->getNode().cStr());
  return out;
}

void recovery_core::take_started(effects& out, instant now, const node_name& node) {
  if (!members_.count(node) || !started_.insert(node).second || started_.size() < members_.size())
    return;
  out.push_back(note{started_in_words(now)});
  works_since_ = now;
  failed_at_.reset();
}

recovery_core::effects recovery_core::failed(instant now, const msg<Failed>& m) {
  effects out;
  if (m.envelope().about != current_ || phase_ == phase::waiting || phase_ == phase::concluded)
    return out;
  auto report = m.read();
  take_failures(now, report->getNode().cStr(), report->getFailures());
  if (report->getEnded())
    ended_.insert(report->getNode().cStr());
  if (phase_ == phase::watching || phase_ == phase::judging)
    judge(out, now);
  else if (phase_ == phase::settling)
    conclude_if_settled(out, now);
  return out;
}

recovery_core::effects recovery_core::finished(instant now, const msg<Finished>& m) {
  effects out;
  if (m.envelope().about != current_)
    return out;
  take_finished(out, now, m.read()->getNode().cStr());
  return out;
}

recovery_core::effects recovery_core::unformable(instant, const msg<Unformable>& m) {
  effects out;
  if (phase_ != phase::concluded)
    conclude(out, false, m.read()->getReason().cStr());
  return out;
}

recovery_core::effects recovery_core::nodes_waiting(instant, const msg<NodesWaiting>& m) {
  effects out;
  if (phase_ == phase::watching && m.envelope().about == current_ && finished_.empty() &&
      away_.empty())
    restart(out, m.read()->getReason().cStr());
  return out;
}

recovery_core::effects recovery_core::indispensable(instant now, const msg<Indispensable>& m) {
  effects out;
  if (phase_ == phase::parting && m.envelope().about == current_)
    charge(out, now);
  return out;
}

recovery_core::effects recovery_core::node_present(instant now, const msg<NodePresent>& m) {
  effects out;
  auto present = m.read();
  const node_name node = present->getNode().cStr();
  away_.erase(node);
  if (phase_ != phase::watching && phase_ != phase::judging)
    return out;
  const auto state = present->getState();
  const bool same = generation{state.getGeneration()} == current_;
  if (finished_.count(node)) {
    // What it had to do is done, whatever it is now.
  } else if (!same) {
    take_loss_of_workers(now, node);
  } else if (state.getPhase() == NodeState::Phase::IDLE ||
             state.getPhase() == NodeState::Phase::DRAINING) {
    // It was told to, by a master that fell before it formed the next one.
    restart(out, fmt::format("node {} has ended generation {} already", node, current_.value));
    return out;
  } else if (state.getPhase() == NodeState::Phase::FINISHED) {
    take_finished(out, now, node);
  } else if (state.getPhase() == NodeState::Phase::FAILED) {
    take_failures(now, node, state.getFailures());
  } else if (state.getPhase() == NodeState::Phase::RUNNING) {
    take_started(out, now, node);
  }
  if (!failures_.empty())
    judge(out, now);
  return out;
}

recovery_core::effects recovery_core::node_away(instant now, const msg<NodeAway>& m) {
  away_.emplace(m.read()->getNode().cStr(), now);
  return {};
}

recovery_core::effects recovery_core::node_lost(instant now, const msg<NodeLost>& m) {
  effects out;
  auto lost = m.read();
  const node_name node = lost->getNode().cStr();
  const auto away = away_.find(node);
  const auto since = away == away_.end() ? now : away->second.value_or(now);
  away_.erase(node);
  if (phase_ != phase::watching && phase_ != phase::judging && phase_ != phase::parting)
    return out;
  // What it had to do is done; the others need not hear of it.
  if (finished_.count(node))
    return out;
  if (!failed_at_)
    failed_at_ = since;
  restart(out, fmt::format("node {} is lost", node));
  return out;
}

recovery_core::effects recovery_core::abandon(const std::string& reason) {
  effects out;
  if (phase_ != phase::concluded)
    conclude(out, false, reason);
  return out;
}

recovery_core::effects recovery_core::tick(instant now) {
  effects out;
  if (phase_ == phase::settling)
    conclude_if_settled(out, now);
  return out;
}

std::optional<instant> recovery_core::next_wakeup() const {
  return phase_ == phase::settling ? std::optional(settled_at_) : std::nullopt;
}

// ---- transitions and decisions ----

void recovery_core::become_watching(instant now, const World::Reader& world) {
  phase_ = phase::watching;
  current_ = generation{world.getGeneration()};
  restart_count_ = world.getRestartCount();
  sealed_at_ = works_since_ = now;
  members_.clear();
  for (auto m : world.getMembers())
    members_.insert(m.getNode().cStr());
  started_.clear();
  finished_.clear();
  ended_.clear();
  failures_.clear();
  away_.clear();
}

void recovery_core::take_finished(effects& out, instant now, const node_name& node) {
  if ((phase_ != phase::watching && phase_ != phase::settling) || !members_.count(node))
    return;
  finished_.insert(node);
  if (phase_ == phase::settling)
    return conclude_if_settled(out, now);
  if (finished_.size() == members_.size())
    conclude(out, true, "every worker finished");
}

void recovery_core::judge(effects& out, instant now) {
  if (!failed_at_)
    failed_at_ = now;
  const bool unclear = std::any_of(away_.begin(), away_.end(),
                                   [this](const auto& a) { return !finished_.count(a.first); });
  if (unclear) {
    phase_ = phase::judging;
    return;
  }
  if (treatment_of(failures_.front().judged.which).part_with_node)
    return part_with_node(out);
  charge(out, now);
}

// ---- words ----

std::string recovery_core::in_words() const {
  switch (phase_) {
  case phase::waiting:
    return "no generation runs";
  case phase::watching:
    return fmt::format("watching generation {}: {} of {} nodes finished, {} restarts used, {} for "
                       "each node",
                       current_.value, finished_.size(), members_.size(), restart_count_,
                       options_.max_restarts);
  case phase::judging:
    return fmt::format("generation {} failed; waiting for {} node(s) that are away", current_.value,
                       away_.size());
  case phase::parting:
    return fmt::format("generation {} failed; asking whether node {} can be spared", current_.value,
                       failures_.front().node);
  case phase::settling:
    return fmt::format("generation {} failed for good; waiting for what else has failed",
                       current_.value);
  case phase::reforming:
    return fmt::format("generation {} is over; the next is being formed", current_.value);
  case phase::concluded:
    return "concluded";
  }
  return {};
}

} // namespace troupe::actors
