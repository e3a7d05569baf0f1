#include "launch/wiring/node_run.hpp"

#include "runtime/sup/engine.hpp"
#include "tests/fakes/processes.hpp"
#include "tests/fakes/stores.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <stdexcept>

using namespace troupe;
using namespace troupe::launch;

namespace {

class refusing_transport final : public ports::transport {
 public:
  result<std::unique_ptr<ports::listener>> listen(const ports::endpoint&, acceptor) override {
    return failure(errc::unavailable, "not here");
  }
  void dial(const ports::endpoint&, messages::msg<messages::Hello>, dialled) override {
    throw std::runtime_error("no thread can be started");
  }
};

} // namespace

TEST_CASE("a tree that cannot be kept up is an outcome, and not one of the job") {
  sup::engine engine(1);
  const actors::node_world world{std::make_shared<refusing_transport>(),
                                 std::make_shared<testing::fake_processes>(),
                                 std::make_shared<testing::fake_stores>()};
  const auto run = node_run::start(engine.system(), world, {}, {});
  const auto outcome = run->outcome();
  REQUIRE(outcome.wait_for(std::chrono::seconds(30)) == std::future_status::ready);
  CHECK(run->gave_up());
  CHECK_FALSE(outcome.get().success);
  CHECK(outcome.get().reason.find("no thread can be started") != std::string::npos);
}
