#include "actors/master/rendezvous/rendezvous_core.hpp"

#include <algorithm>

/// What rendezvous makes of the journal when it starts anew.
namespace troupe::actors {

using namespace messages;

void rendezvous_core::recall(instant now, const std::vector<any_msg>& history) {
  for (const auto& entry : history) {
    if (entry.is<GenerationProposed>()) {
      auto proposed = entry.as<GenerationProposed>().read();
      current_ = std::max(current_, generation{proposed->getGeneration()});
      relaunches_ = std::max(relaunches_, proposed->getRelaunches());
      phase_ = phase::gathering;
    } else if (entry.is<RestartCharged>()) {
      restart_count_ = entry.as<RestartCharged>().read()->getRestartCount();
      phase_ = phase::gathering;
    } else if (entry.is<GenerationSealed>()) {
      auto sealed = entry.as<GenerationSealed>().read();
      world_.clear();
      for (auto m : sealed->getWorld().getMembers())
        world_.push_back(seat{m.getNode().cStr(), m.getAddress().cStr(), m.getSlots(),
                              m.getGroupRank(), m.getFirstRank()});
      current_ = generation{sealed->getWorld().getGeneration()};
      store_ = store_place{sealed->getStoreAddress().cStr(), sealed->getStorePort(),
                           sealed->getStoreHosted()};
      phase_ = phase::running;
    } else if (entry.is<Concluded>()) {
      auto verdict = entry.as<Concluded>().read();
      conclusion_ = author_
                        .write<Conclude>(current_,
                                         [&](auto b) {
                                           b.setSuccess(verdict->getSuccess());
                                           b.setReason(verdict->getReason());
                                           b.setExitCode(verdict->getExitCode());
                                         })
                        .any();
      phase_ = phase::concluded;
      break; // what was proposed before the verdict came through is of no use any more
    }
  }
  // Nobody has a link yet; the members of the last world are known to have been there.
  for (const auto& s : world_) {
    last_group_ranks_[s.node] = s.group_rank;
    nodes_[s.node] = present_node{candidate{s.node, s.address, s.slots, {}, ++arrivals_}, true};
    members_.insert(s.node);
  }
  away_count_ = nodes_.size();
  first_world_ = world_.empty();
  if (phase_ == phase::gathering) {
    world_.clear();
    members_.clear();
  }
  if (!nodes_.empty())
    recalled_at_ = now;
  phase_since_ = now;
  if (phase_ != phase::gathering)
    waiting_.end();
  if (phase_ == phase::running)
    growth_.generation_begins(now);
}

void rendezvous_core::stop_waiting_for_return(effects& out, instant now) {
  recalled_at_.reset();
  if (phase_ == phase::concluded) {
    out.push_back(announce_end{});
    return;
  }
  std::vector<node_name> missing;
  for (const auto& [name, n] : nodes_)
    if (n.away)
      missing.push_back(name);
  for (const auto& node : missing) {
    const auto lost = author_.write<NodeLost>(current_, [&](auto b) {
      b.setNode(node);
      b.setReason("it did not come back to the restarted master");
    });
    for (auto& e : node_lost(now, lost))
      out.push_back(std::move(e));
  }
}

} // namespace troupe::actors
