#include "tests/sim/checkers/checkers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace troupe::sim::checkers {

namespace {

/// What is known of a save.
struct saved {
  std::uint64_t step = 0;
  std::uint32_t world_size = 0;
  std::size_t shards = 0;
  std::set<std::string> writers, completed; ///< nodes
  std::vector<std::string> of_shard;        ///< the node that wrote it
  std::optional<instant> told;              ///< a process, that it is complete
  bool loaded = false;
  bool replaced = false; ///< by a newer save of the same step
  bool gone = false;     ///< with the disk of a node, or damaged
};

class complete_steps_stay_checker final : public observer {
 public:
  complete_steps_stay_checker(world& w, bool shared, ckpt::retention keep)
      : world_(w), shared_(shared), keep_(keep) {}

  void step_completed(const std::string& node, const ckpt::commit_order& order) override {
    auto& s = saves_[order.says.id()];
    s.step = order.says.step;
    s.world_size = order.says.world_size;
    s.shards = order.says.shards.size();
    s.completed.insert(node);
    s.of_shard.clear();
    for (const auto& shard : order.says.shards) {
      s.writers.insert(shard.node);
      s.of_shard.push_back(shard.node);
    }
    const auto since = requested_.find(order.says.id());
    s.gone = s.gone || (since != requested_.end() && since->second <= decayed_);
  }

  /// What an older save completed under this number, if it is not the newest, may be begun again.
  void persist_requested(const std::string&, const ckpt::persist_request& snapshot) override {
    requested_.try_emplace(snapshot.id(), world_.events.now());
    for (auto& [id, s] : saves_)
      s.replaced = s.replaced || (s.step == snapshot.step && id < snapshot.id());
  }

  void persist_finalized(const std::string&, const ckpt::persist_request& snapshot,
                         bool complete) override {
    if (!complete)
      return;
    auto& s = saves_[snapshot.id()];
    s.told = s.told.value_or(world_.events.now());
    if (!shared_ && !s.gone && s.completed != s.writers)
      world_.blame("complete_steps_stay",
                   fmt::format("rank {} was told that step {} is complete, and not every node has "
                               "completed it in its own directory",
                               snapshot.rank, s.step));
  }

  void disk_replaced(const std::string& node) override {
    for (auto& [id, s] : saves_)
      s.gone = s.gone || s.writers.count(node) != 0;
  }

  /// Any of them may be it, and any that is being written.
  void place_decayed(const std::string& node) override {
    decayed_ = world_.events.now();
    for (auto& [id, s] : saves_)
      s.gone = s.gone || shared_ || s.writers.count(node) != 0;
  }

  void loaded(const load_outcome& what) override {
    std::uint64_t newer = 0; ///< of those that were complete
    for (auto at = saves_.rbegin(); at != saves_.rend(); ++at) {
      const auto& [id, s] = *at;
      const bool told_before = s.told && *s.told <= what.looked;
      if (!told_before && !s.loaded)
        continue;
      // What is gone has been the newer one when older ones were removed.
      if (may_be_removed(s, newer++) || s.gone || s.replaced || !can_be_had(s, what))
        continue;
      if (!what.id || *what.id < id)
        world_.blame("complete_steps_stay",
                     fmt::format("generation {} goes on from {}, and step {} of save {} of "
                                 "generation {} was complete",
                                 what.by.value,
                                 what.id ? fmt::format("step {}", what.step) : "nothing", s.step,
                                 id.number, id.made_by.value));
      break;
    }
    if (what.id)
      if (const auto known = saves_.find(*what.id); known != saves_.end())
        known->second.loaded = true;
  }

 private:
  bool may_be_removed(const saved& s, std::uint64_t newer) const {
    const bool by_latest = keep_.keep_latest != 0 || keep_.keep_every != 0;
    const bool periodic = keep_.keep_every != 0 && s.step % keep_.keep_every == 0;
    return by_latest && newer >= std::max<std::uint64_t>(keep_.keep_latest, 1) && !periodic;
  }

  /// A newer step that does not fit the world is not passed over: the load ends, and says so. But
  /// where each node has a directory of its own, one that was lost before it completed the step
  /// cannot read it, and a rank reads only what its own node has written.
  bool can_be_had(const saved& s, const load_outcome& what) const {
    if (shared_)
      return true;
    const bool replicated = s.shards == 1 && s.world_size != 1;
    if (!replicated && s.world_size != what.nodes.size())
      return false;
    if (replicated)
      return std::find(what.nodes.begin(), what.nodes.end(), s.of_shard.front()) !=
             what.nodes.end();
    return s.completed == s.writers && s.of_shard == what.nodes;
  }

  world& world_;
  const bool shared_;
  const ckpt::retention keep_;
  std::map<ckpt::save_id, saved> saves_;
  std::map<ckpt::save_id, instant> requested_; ///< first
  instant decayed_{duration(-1)};              ///< a place, last
};

} // namespace

std::shared_ptr<observer> complete_steps_stay(world& w, bool shared, ckpt::retention keep) {
  return std::make_shared<complete_steps_stay_checker>(w, shared, keep);
}

} // namespace troupe::sim::checkers
