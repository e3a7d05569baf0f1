#include "messages/kinds.hpp"
#include "tests/sim/checkers/checkers.hpp"

#include <fmt/format.h>

#include <map>
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
    const std::string node = m.as<messages::RestartCounted>().read()->getNode().cStr();
    if (++counted_[node] > max_restarts_)
      world_.blame("restarts_within_budget",
                   fmt::format("{} restarts were counted against node '{}', {} are allowed",
                               counted_[node], node, max_restarts_));
  }

 private:
  world& world_;
  std::uint32_t max_restarts_;
  std::map<std::string, std::uint32_t> counted_;
};

} // namespace

std::shared_ptr<observer> restarts_within_budget(world& w, std::uint32_t max_restarts) {
  return std::make_shared<restarts_within_budget_checker>(w, max_restarts);
}

} // namespace troupe::sim::checkers
