#include "tests/sim/checkers/checkers.hpp"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <utility>

namespace troupe::sim::checkers {

namespace {

class checkpoints_are_kept_checker final : public observer {
 public:
  explicit checkpoints_are_kept_checker(world& w) : world_(w) {}

  void persist_requested(const std::string& node, const ckpt::persist_request& snapshot) override {
    unfinalized_[node][{snapshot.local, snapshot.sequence}] = {snapshot, world_.events.now()};
    auto& shards = requests_[{snapshot.step, snapshot.id()}];
    shards.insert(snapshot.to.shard);
    shards_of_[{snapshot.step, snapshot.id()}] = snapshot.to.shards;
  }

  void persist_finalized(const std::string& node, const ckpt::persist_request& snapshot,
                         bool complete) override {
    if (unfinalized_[node].erase({snapshot.local, snapshot.sequence}) == 0)
      return blame(fmt::format("an image of step {} of rank {} was finalized twice", snapshot.step,
                               snapshot.rank));
    if (complete && completed_.count(snapshot.step) == 0)
      blame(fmt::format("rank {} was told that step {} is complete, and it is not", snapshot.rank,
                        snapshot.step));
  }

  void step_completed(const std::string& node, const ckpt::commit_order& order) override {
    const auto& says = order.says;
    completed_.insert(says.step);
    const std::pair id{says.step, says.id()};
    for (std::uint32_t shard = 0; shard < says.shards.size(); ++shard)
      if (requests_[id].count(shard) == 0)
        blame(fmt::format("step {} of generation {} was made complete on {}, and shard {} had not "
                          "been saved",
                          says.step, says.made_by.value, node, shard));
    if (says.shards.size() != shards_of_[id])
      blame(fmt::format("step {} has {} shards of {}", says.step, says.shards.size(),
                        shards_of_[id]));
  }

  void snapshots_lost(const std::string& node) override { unfinalized_.erase(node); }
  void started(const std::string& host, std::uint64_t) override { interrupted_.erase(host); }
  void interrupted(const std::string& host) override { ++interrupted_[host]; }

  /// No node finishes while what it saved last is on its way, unless that takes longer than it may,
  /// or its user has taken the patience away by a second signal.
  void sent(const std::string& from, const std::string&, const messages::any_msg& m) override {
    if (!m.is<messages::Finished>() || interrupted_[from] > 1)
      return;
    for (const auto& [id, waits] : unfinalized_[from])
      if (const auto& [snapshot, since] = waits;
          snapshot.made_by == m.envelope().about &&
          world_.events.now() - since < 2 * snapshot.to.save_within - 100ms)
        blame(fmt::format("{} has finished, and step {} of rank {} is not finalized", from,
                          snapshot.step, snapshot.rank));
  }

 private:
  using snapshot_id = std::pair<local_rank, std::uint64_t>;

  void blame(std::string what) { world_.blame("checkpoints_are_kept", std::move(what)); }

  world& world_;
  std::map<std::string, std::map<snapshot_id, std::pair<ckpt::persist_request, instant>>>
      unfinalized_;
  using save_of_step = std::pair<std::uint64_t, ckpt::save_id>;
  std::map<save_of_step, std::set<std::uint32_t>> requests_; ///< shards
  std::map<save_of_step, std::size_t> shards_of_;
  std::set<std::uint64_t> completed_;
  std::map<std::string, std::uint64_t> interrupted_; ///< so often, in the node's newest life
};

} // namespace

std::shared_ptr<observer> checkpoints_are_kept(world& w) {
  return std::make_shared<checkpoints_are_kept_checker>(w);
}

} // namespace troupe::sim::checkers
