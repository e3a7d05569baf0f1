// What catalog_core does about nodes that are lost while steps wait for them.
//
// The time for saving is long, since disks are slow. Spent on a node that is gone it would hold up
// all others that wait to hear how the step ends: at the end of a job that is everything that is
// left. So a loss shortens the wait, where it is certain that nothing else is waited for.

#include "actors/limits.hpp"
#include "actors/master/catalog/catalog_core.hpp"
#include "runtime/base/generations.hpp"

#include <algorithm>

namespace troupe::actors {

using namespace messages;

/// The ranks of each world tell which node owes which shard. Older worlds are kept for a while:
/// their last steps may be on their way when the next generation is sealed.
void catalog_core::sealed(const msg<Sealed>& m) {
  auto body = m.read();
  auto world = body->getWorld();
  auto& known = worlds_[generation{world.getGeneration()}];
  known = {world.getWorldSize(), {}};
  for (auto each : world.getMembers()) {
    known.members.push_back({each.getNode().cStr(), each.getFirstRank(), each.getSlots()});
    // The name is filled again, by the same node or another one.
    lost_.erase(each.getNode().cStr());
  }
  while (worlds_.size() > limits::worlds_remembered)
    worlds_.erase(worlds_.begin());
}

/// Without this a node that was lost at the end of a job held back the verdict of the others for
/// the whole time that a save may take.
catalog_core::effects catalog_core::node_lost(instant now, const msg<NodeLost>& m) {
  effects out;
  // Any may go: what is forgotten here is only waited for longer.
  if (lost_.size() >= limits::nodes_max)
    lost_.erase(lost_.begin());
  lost_.insert(m.read()->getNode().cStr());
  // Also steps that did not wait for this node before: it may be the last one that they had.
  for (auto at = open_.begin(); at != open_.end();) {
    const auto next = at++;
    hurry(out, now, next);
  }
  return out;
}

/// Its time for saving is for nodes that are at work.
/// One that is lost may join anew, with its snapshots in memory; so it has a little time, and no
/// more.
void catalog_core::hurry(effects& out, instant now, open_steps::iterator at) {
  auto& s = at->second;
  // Most reports come while no node is lost, so that is asked first: the rest walks all shards.
  if (lost_.empty() || !waits_only_for_lost(at->first, s))
    return;
  // A committer can be replaced at once, since another node that wrote can do the same.
  const bool others = std::any_of(s.files.begin(), s.files.end(), [this, &s](const auto& f) {
    return s.asked.count(f.second.node) == 0 && lost_.count(f.second.node) == 0;
  });
  TROUPE_RARE_IF(s.at == phase::gathering, "catalog: a node is lost that owes a shard");
  TROUPE_RARE_IF(s.at == phase::committing, "catalog: a node is lost that was to complete a step");
  if (s.at == phase::committing && others)
    return ask_next_committer(out, now, at);
  // Never later than before: a second loss does not prolong the wait for the first.
  s.until = std::min(s.until, now + limits::lost_writer_within);
}

/// The question differs by phase. Gathering fails with one shard, so one lost writer is enough.
/// Following fails with none, so it goes on while any follower may still answer.
bool catalog_core::waits_only_for_lost(const step_key& which, const step& s) const {
  if (s.at == phase::gathering)
    return lost_writer(which, s).has_value();
  if (s.at == phase::committing)
    return lost_.count(s.committer) != 0;
  // Nodes that have answered hold nothing up, lost or not.
  return !any_not_lost(followers(s));
}

bool catalog_core::any_not_lost(const std::set<node_name>& nodes) const {
  return std::any_of(nodes.begin(), nodes.end(),
                     [this](const node_name& node) { return lost_.count(node) == 0; });
}

/// One that will not come is enough: without it the step is never complete.
std::optional<node_name> catalog_core::lost_writer(const step_key& which, const step& s) const {
  if (lost_.empty())
    return std::nullopt;
  for (std::uint32_t shard = 0; shard < s.shards; ++shard) {
    // Its shard is written and reported: on a shared directory the loss of the node costs nothing.
    if (s.files.count(shard) != 0)
      continue;
    auto writer = writer_of(which, s, shard);
    if (writer && lost_.count(*writer) != 0)
      return writer;
  }
  return std::nullopt;
}

/// Ranks that save make the shards in their order. Which ranks these are is known where all do, and
/// where only the first does.
/// In all other cases the program chose them, so no node is known to owe a shard.
std::optional<node_name> catalog_core::writer_of(const step_key& which, const step& s,
                                                 std::uint32_t shard) const {
  // A snapshot may be of a generation that this master has not seen sealed.
  // At a place where its term was taken already its saves have another, and the same count.
  auto known = worlds_.find(which.made_by);
  if (known == worlds_.end() && !worlds_.empty() && worlds_.rbegin()->first < which.made_by)
    known = std::find_if(worlds_.begin(), worlds_.end(), [&which](const auto& w) {
      return count_of(w.first) == count_of(which.made_by);
    });
  if (known == worlds_.end() || known->second.world_size != s.world_size ||
      (s.shards != s.world_size && s.shards != 1))
    return std::nullopt;
  const auto at = std::find_if(
      known->second.members.begin(), known->second.members.end(),
      [shard](const member& m) { return m.first_rank <= shard && shard < m.first_rank + m.slots; });
  return at == known->second.members.end() ? std::nullopt : std::optional(at->node);
}

/// It joined anew, and its saver has said what it has.
/// So the steps that were hurried because of it have their whole time again, unless another writer
/// is still lost.
void catalog_core::came_back(const node_name& node) {
  // Most reports are of nodes that were never lost.
  if (lost_.erase(node) == 0)
    return;
  TROUPE_RARE("catalog: a lost node has joined anew with its images");
  for (auto& [which, s] : open_)
    // Only while shards are missing: a follower that is back answers within what is left, or the
    // step is complete without it.
    if (s.at == phase::gathering && !s.is_complete() && !lost_writer(which, s))
      s.until = s.since + s.save_within;
}

} // namespace troupe::actors
