#include "tests/sim/checkers/checkers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

namespace troupe::sim::checkers {

namespace {

class held_states_stay_checker final : public observer {
 public:
  explicit held_states_stay_checker(world& w) : world_(w) {}

  void copies_agreed(const held_state& what) override {
    held_ = what;
    lost_.clear();
  }

  void snapshots_lost(const std::string& node) override { lost_.insert(node); }

  /// From a newer one on it is that which counts, and no rank relies on what was given up.
  void loaded(const load_outcome& what) override {
    if (!held_ || (what.id && *what.id == held_->id))
      return;
    const bool is_older = !what.id || *what.id < held_->id;
    if (is_older && can_be_had(what))
      world_.blame("held_states_stay",
                   fmt::format("generation {} goes on from {}, and all ranks knew that other nodes "
                               "held step {} of save {} of generation {}",
                               what.by.value,
                               what.id ? fmt::format("step {}", what.step) : "nothing", held_->step,
                               held_->id.number, held_->id.made_by.value));
    held_.reset();
  }

 private:
  /// A node that has lost its memory, or that its rank has left, has neither the rank's snapshot
  /// nor its pieces of the others'.
  bool can_be_had(const load_outcome& what) const {
    if (what.nodes.size() != held_->nodes.size())
      return false;
    const auto is_gone = [&](global_rank rank) {
      return what.nodes[rank] != held_->nodes[rank] || lost_.count(held_->nodes[rank]) != 0;
    };
    return std::all_of(held_->groups.begin(), held_->groups.end(), [&](const auto& g) {
      return std::count_if(g.ranks.begin(), g.ranks.end(), is_gone) <=
             static_cast<std::ptrdiff_t>(g.parity);
    });
  }

  world& world_;
  std::optional<held_state> held_; ///< the newest
  std::set<std::string> lost_;     ///< nodes, since then
};

} // namespace

std::shared_ptr<observer> held_states_stay(world& w) {
  return std::make_shared<held_states_stay_checker>(w);
}

} // namespace troupe::sim::checkers
