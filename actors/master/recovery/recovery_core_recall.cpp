// What recovery_core makes of the journal when it begins anew.

#include "actors/master/recovery/recovery_core.hpp"

#include <algorithm>
#include <utility>

namespace troupe::actors {

using namespace messages;

recovery_core::effects recovery_core::recall(instant now, const std::vector<any_msg>& history) {
  effects out;
  std::optional<msg<Start>> start;
  std::optional<verdict> decided;
  for (const auto& entry : history) {
    if (entry.is<GenerationProposed>()) {
      auto proposed = entry.as<GenerationProposed>().read();
      current_ = std::max(current_, generation{proposed->getGeneration()});
      relaunches_ = std::max(relaunches_, proposed->getRelaunches());
      start.reset();
    } else if (entry.is<GenerationSealed>()) {
      auto sealed = entry.as<GenerationSealed>().read();
      take_world(sealed->getWorld());
      start = author_.write<Start>(current_, [&](auto b) {
        b.setStoreAddress(sealed->getStoreAddress());
        b.setStorePort(sealed->getStorePort());
        b.setStoreHosted(sealed->getStoreHosted());
      });
    } else if (entry.is<RestartCharged>()) {
      auto charged = entry.as<RestartCharged>().read();
      restart_count_ = charged->getRestartCount();
      without_progress_ = charged->getWithoutProgress();
      auto& charges = charges_[charged->getNode().cStr()];
      charges = charged->getCharged() != 0 ? charged->getCharged() : charges + 1;
      start.reset();
    } else if (entry.is<Concluded>()) {
      auto recorded = entry.as<Concluded>().read();
      decided =
          verdict{recorded->getSuccess(), recorded->getReason().cStr(), recorded->getExitCode()};
      break; // what was proposed before the verdict came through is of no use any more
    }
  }
  // No node has a link yet; the members of the last world are known to have been there.
  roster_.remember_world(world_);
  for (const auto& s : world_)
    roster_.expect(candidate{s.node, s.address, s.slots, {}, 0, sizes_.stop_within, {}, s.which});
  first_world_ = world_.empty();
  phase_since_ = now;
  if (roster_.size() > 0 || decided)
    recalled_at_ = now;
  if (!charges_.empty())
    out.push_back(recall_charges{charges_});
  if (decided)
    recall_verdict(out, *decided);
  else if (start)
    recall_generation(out, now, *start);
  else
    forget_generation();
  check();
  return out;
}

/// Announced again: the earlier planner may not have come to that.
void recovery_core::recall_verdict(effects& out, const verdict& v) {
  become(phase::concluded);
  waiting_.end();
  conclusion_ = author_
                    .write<Conclude>(current_,
                                     [&](auto b) {
                                       b.setSuccess(v.success);
                                       b.setReason(v.reason);
                                       b.setExitCode(v.exit_code);
                                     })
                    .any();
  out.push_back(v);
}

/// It may well run: its members say so when they are back.
void recovery_core::recall_generation(effects& out, instant now, const msg<Start>& start) {
  was_sealed_ = in_the_tree_ = true;
  become(phase::running);
  waiting_.end();
  works_since_ = now;
  sealed_at_.reset();
  growth_.generation_begins(now);
  for (const auto& [node, which] : members_)
    away_.emplace(node, std::nullopt);
  out.push_back(start_generation{prepare_message(), start, members_may_take(), std::nullopt});
}

/// A concluded job only has its verdict left to tell, to nodes that dial for it.
instant recovery_core::recall_until() const {
  return *recalled_at_ +
         (phase_ == phase::concluded ? sizes_.recall_concluded_within : sizes_.recall_within);
}

void recovery_core::stop_waiting_for_return(effects& out, instant now) {
  recalled_at_.reset();
  if (phase_ == phase::concluded) {
    out.push_back(announce_end{});
    return;
  }
  for (const auto& node : roster_.all_away()) {
    const auto lost = author_.write<NodeLost>(current_, [&](auto b) {
      b.setNode(node);
      b.setReason("it did not come back to the restarted master");
    });
    for (auto& e : node_lost(now, lost))
      out.push_back(std::move(e));
  }
}

} // namespace troupe::actors
