#include "messages/kinds.hpp"
#include "tests/sim/checkers/checkers.hpp"

#include <fmt/format.h>

#include <set>

namespace troupe::sim::checkers {

namespace {

class failures_counted_once_checker final : public observer {
 public:
  explicit failures_counted_once_checker(world& w) : world_(w) {}

  void recorded(const messages::any_msg& m) override {
    if (!m.is<messages::RestartCounted>())
      return;
    auto counted = m.as<messages::RestartCounted>().read();
    if (!counted_.insert(counted->getGeneration()).second)
      world_.blame("failures_counted_once",
                   fmt::format("generation {} was counted twice", counted->getGeneration()));
    if (counted->getRestartCount() != counted_.size())
      world_.blame("failures_counted_once",
                   fmt::format("the {}th counted failure has the count {}", counted_.size(),
                               counted->getRestartCount()));
  }

 private:
  world& world_;
  std::set<std::uint64_t> counted_;
};

} // namespace

std::shared_ptr<observer> failures_counted_once(world& w) {
  return std::make_shared<failures_counted_once_checker>(w);
}

} // namespace troupe::sim::checkers
