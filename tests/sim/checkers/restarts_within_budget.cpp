#include "messages/kinds.hpp"
#include "tests/sim/checkers/checkers.hpp"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>

namespace troupe::sim::checkers {

namespace {

class restarts_within_budget_checker final : public observer {
 public:
  restarts_within_budget_checker(world& w, std::uint32_t max_restarts)
      : world_(w), max_restarts_(max_restarts) {}

  void recorded(const messages::any_msg& m) override {
    if (!m.is<messages::RestartCounted>())
      return;
    auto counted = m.as<messages::RestartCounted>().read();
    const std::string node = counted->getNode().cStr();
    // The failure beyond the budget is that for which the node leaves, and it comes once.
    if (counted->getRestartsUsed() == max_restarts_ + 1 && left_.insert(node).second)
      return;
    if (++counted_[node] > max_restarts_)
      world_.blame("restarts_within_budget",
                   fmt::format("{} restarts were counted against node '{}', {} are allowed",
                               counted_[node], node, max_restarts_));
  }

 private:
  world& world_;
  std::uint32_t max_restarts_;
  std::map<std::string, std::uint32_t> counted_;
  std::set<std::string> left_;
};

} // namespace

std::shared_ptr<observer> restarts_within_budget(world& w, std::uint32_t max_restarts) {
  return std::make_shared<restarts_within_budget_checker>(w, max_restarts);
}

} // namespace troupe::sim::checkers
