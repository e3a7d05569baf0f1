// What recovery_core makes of the journal when it begins anew.

#include "actors/master/recovery/recovery_core.hpp"
#include "messages/conversations.hpp"

#include <algorithm>
#include <utility>

namespace troupe::actors {

using namespace messages;

recovery_core::effects recovery_core::recall(instant now, const std::vector<any_msg>& history) {
  effects out;
  std::optional<msg<Start>> start;
  std::optional<verdict> decided;
  const auto take =
      receivers{[&](const msg<GenerationProposed>& m) {
                  auto proposed = m.read();
                  current_ = std::max(current_, generation{proposed->getGeneration()});
                  relaunches_ = std::max(relaunches_, proposed->getRelaunches());
                  start.reset();
                },
                [&](const msg<GenerationSealed>& m) {
                  auto sealed = m.read();
                  take_world(sealed->getWorld());
                  start = author_.write<Start>(current_, [&](auto b) {
                    b.setStoreAddress(sealed->getStoreAddress());
                    b.setStorePort(sealed->getStorePort());
                    b.setStoreHosted(sealed->getStoreHosted());
                  });
                },
                [&](const msg<RestartCharged>& m) {
                  auto charged = m.read();
                  restart_count_ = charged->getRestartCount();
                  without_progress_ = charged->getWithoutProgress();
                  auto& charges = charges_[charged->getNode().cStr()];
                  charges = charged->getCharged() != 0 ? charged->getCharged() : charges + 1;
                  start.reset();
                },
                [&](const msg<Concluded>& m) {
                  auto recorded = m.read();
                  decided = verdict{recorded->getSuccess(), recorded->getReason().cStr(),
                                    recorded->getExitCode()};
                },
                [](const msg<FarewellEnded>&) { /* said to the journal's next opening */ },
                [](const msg<Opened>&) { /* retired */ }};
  // What was proposed before the verdict came through is of no use any more.
  for (auto entry = history.begin(); entry != history.end() && !decided; ++entry)
    route(*entry, journal_records{}, take);
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
    // One that was back, and is away again, is membership's to judge.
    if (const auto known = away_.find(node); known != away_.end() && known->second)
      continue;
    const auto lost = author_.write<NodeLost>(current_, [&](auto b) {
      b.setNode(node);
      b.setReason("it did not come back to the restarted master");
    });
    for (auto& e : node_lost(now, lost))
      out.push_back(std::move(e));
  }
}

} // namespace troupe::actors
