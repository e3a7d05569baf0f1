#include "messages/kinds.hpp"
#include "tests/sim/checkers/checkers.hpp"

#include <fmt/format.h>

namespace troupe::sim::checkers {

namespace {

class checker final : public observer {
 public:
  checker(world& w, std::uint32_t max_restarts) : world_(w), max_restarts_(max_restarts) {}

  void recorded(const messages::any_msg& m) override {
    if (m.is<messages::RestartCharged>())
      ++charged_;
    if (charged_ > max_restarts_)
      world_.blame("restarts_within_budget", fmt::format("{} restarts were charged, {} are allowed",
                                                         charged_, max_restarts_));
  }

 private:
  world& world_;
  std::uint32_t max_restarts_;
  std::uint32_t charged_ = 0;
};

} // namespace

std::shared_ptr<observer> restarts_within_budget(world& w, std::uint32_t max_restarts) {
  return std::make_shared<checker>(w, max_restarts);
}

} // namespace troupe::sim::checkers
