#include "messages/kinds.hpp"
#include "tests/sim/checkers/checkers.hpp"

#include <fmt/format.h>

#include <set>

namespace troupe::sim::checkers {

namespace {

class failures_charged_once_checker final : public observer {
 public:
  explicit failures_charged_once_checker(world& w) : world_(w) {}

  void recorded(const messages::any_msg& m) override {
    if (!m.is<messages::RestartCharged>())
      return;
    auto charge = m.as<messages::RestartCharged>().read();
    if (!charged_.insert(charge->getGeneration()).second)
      world_.blame("failures_charged_once",
                   fmt::format("generation {} was charged twice", charge->getGeneration()));
    if (charge->getRestartCount() != charged_.size())
      world_.blame("failures_charged_once",
                   fmt::format("the {}th charge has the count {}", charged_.size(),
                               charge->getRestartCount()));
  }

 private:
  world& world_;
  std::set<std::uint64_t> charged_;
};

} // namespace

std::shared_ptr<observer> failures_charged_once(world& w) {
  return std::make_shared<failures_charged_once_checker>(w);
}

} // namespace troupe::sim::checkers
