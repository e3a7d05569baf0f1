#include "messages/kinds.hpp"
#include "tests/sim/checkers/checkers.hpp"

#include <fmt/format.h>

#include <optional>

namespace troupe::sim::checkers {

namespace {

class one_verdict_checker final : public observer {
 public:
  explicit one_verdict_checker(world& w) : world_(w) {}

  void recorded(const messages::any_msg& m) override {
    if (concluded_)
      world_.blame("one_verdict",
                   messages::kind_name(m.kind()) + " was journalled after the verdict");
    if (m.is<messages::Concluded>())
      concluded_ = m.as<messages::Concluded>().read()->getSuccess();
  }

  void sent(const std::string&, const std::string& to, const messages::any_msg& m) override {
    if (m.is<messages::Conclude>()) {
      const bool success = m.as<messages::Conclude>().read()->getSuccess();
      if (!concluded_ || *concluded_ != success)
        world_.blame("one_verdict", "a verdict that is not journalled was sent to " + to);
    }
    if (concluded_ && (m.is<messages::Start>() || m.is<messages::Prepare>()))
      world_.blame("one_verdict", fmt::format("{} was sent to {} after the verdict",
                                              messages::kind_name(m.kind()), to));
  }

 private:
  world& world_;
  std::optional<bool> concluded_;
};

} // namespace

std::shared_ptr<observer> one_verdict(world& w) {
  return std::make_shared<one_verdict_checker>(w);
}

} // namespace troupe::sim::checkers
