#include "runtime/base/limits.hpp"
#include "tests/sim/checkers/checkers.hpp"
#include "tests/sim/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace troupe::sim::checkers {

namespace {

class losses_have_a_cause_checker final : public observer {
 public:
  losses_have_a_cause_checker(world& w, checkpoints& of) : world_(w), all_(of) {}

  void started(const std::string& host, std::uint64_t) override {
    down_.erase(host);
    knows_owners_.erase(host);
    happened();
  }
  void ended(const std::string& host, ending_kind how) override {
    if (how == ending_kind::power_cut)
      unheard_until_ = world_.events.now() + limits::lease;
    down_.insert(host);
    frozen_.erase(host);
    happened();
  }
  void froze(const std::string& host) override {
    frozen_.insert(host);
    happened();
  }
  void thawed(const std::string& host) override {
    frozen_.erase(host);
    happened();
  }
  void way_cut(const std::string& from, const std::string& to) override {
    cut_.insert({from, to});
    happened();
  }
  void way_free(const std::string& from, const std::string& to) override {
    cut_.erase({from, to});
    happened();
  }
  void process_started(const process_record& p) override { newest_ = std::max(newest_, p.which); }
  void process_ended(const process_record&) override { happened(); }
  void link_opened(const std::string& host, const std::string& peer, std::uint64_t) override {
    if (peer == cluster::master_name())
      linked_.insert(host);
  }
  void link_ended(const std::string& host, const std::string& peer, std::uint64_t,
                  ports::link_end) override {
    if (peer == cluster::master_name())
      linked_.erase(host);
    happened();
  }
  void disk_replaced(const std::string&) override { happened(); }
  void said(const std::string&, const std::string&, const log::event& e) override {
    if (e.name == "child_restarted")
      happened();
  }

  void persist_requested(const std::string& node, const ckpt::persist_request& snapshot) override {
    // A node that looks for its master takes its time, and a rank of a world that has a successor
    // saves nothing any more.
    const bool quiet = frozen_.empty() && cut_.empty() && !all_.any_is_ill() &&
                       linked_.count(node) != 0 && !(snapshot.made_by < newest_);
    if (!quiet)
      excused_.insert(snapshot.id());
    requested_.try_emplace(key_of(node, snapshot), happened_ + all_.troubles());
  }

  void delivered(const std::string& at, const std::string&, const messages::any_msg& m) override {
    if (m.is<messages::RankOwners>())
      knows_owners_.insert(at);
  }

  /// Of what a load has found an earlier world may be giving copies still, which these disturb. A
  /// node that has just begun takes none before it has heard which nodes may give; all ranks of a
  /// step then wait in vain for those that it has turned away.
  void copies_requested(const std::string& node, const ckpt::snapshot_to_copy& snapshot,
                        generation by) override {
    const auto& members = snapshot.by.members;
    const bool quiet = frozen_.empty() && down_.empty() && snapshot.made_by == by &&
                       world_.events.now() > unheard_until_ &&
                       std::all_of(members.begin(), members.end(), [this](const auto& m) {
                         return knows_owners_.count(m.address) != 0;
                       });
    if (!quiet)
      excused_copies_.insert({snapshot.made_by, snapshot.step});
    copies_.try_emplace(key_of(node, snapshot), happened_);
  }

  void copies_finalized(const std::string& node, const ckpt::snapshot_here& snapshot,
                        const result<void>& how) override {
    const auto found = copies_.extract(key_of(node, snapshot));
    const bool excused = excused_copies_.count({snapshot.made_by, snapshot.step}) != 0;
    if (!how && !excused && !found.empty() && found.mapped() == happened_)
      world_.blame(
          "losses_have_a_cause",
          fmt::format("copies of step {} of rank {} are not held, and nothing has happened "
                      "since they were wanted: {}",
                      snapshot.step, snapshot.rank, how.error().what));
  }

  /// Of a world whose load had looked before: the same step is not saved once more.
  void step_completed(const std::string&, const ckpt::commit_order& order) override {
    completed_.insert(order.says.step);
  }

  void persist_finalized(const std::string& node, const ckpt::persist_request& snapshot,
                         bool complete) override {
    const auto found = requested_.find(key_of(node, snapshot));
    if (found == requested_.end())
      return;
    const auto before = found->second;
    requested_.erase(found);
    const bool excused = excused_.count(snapshot.id()) != 0 || completed_.count(snapshot.step) != 0;
    if (!complete && !excused && before == happened_ + all_.troubles() && !all_.any_is_ill())
      world_.blame("losses_have_a_cause",
                   fmt::format("step {} of rank {} is reported lost, and nothing has happened "
                               "since it was saved",
                               snapshot.step, snapshot.rank));
  }

 private:
  using key = std::pair<std::string, std::pair<local_rank, std::uint64_t>>;
  static key key_of(const std::string& node, const ckpt::snapshot_here& snapshot) {
    return {node, {snapshot.local, snapshot.sequence}};
  }

  void happened() { ++happened_; }

  world& world_;
  checkpoints& all_;
  std::uint64_t happened_ = 0; ///< so often something has, anywhere
  std::set<std::string> frozen_, linked_, down_;
  instant unheard_until_{};            ///< a link without power is open so long at its other end
  std::set<std::string> knows_owners_; ///< which node runs which ranks, since it is up
  std::set<ckpt::save_id> excused_;
  std::set<std::pair<generation, std::uint64_t>> excused_copies_; ///< steps
  std::set<std::uint64_t> completed_;                             ///< steps
  generation newest_;
  std::set<std::pair<std::string, std::string>> cut_;
  std::map<key, std::uint64_t> requested_, copies_; ///< what had happened before
};

} // namespace

std::shared_ptr<observer> losses_have_a_cause(world& w, checkpoints& of) {
  return std::make_shared<losses_have_a_cause_checker>(w, of);
}

} // namespace troupe::sim::checkers
