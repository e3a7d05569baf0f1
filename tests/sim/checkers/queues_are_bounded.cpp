#include "runtime/base/limits.hpp"
#include "tests/sim/checkers/checkers.hpp"

#include <fmt/format.h>

namespace troupe::sim::checkers {

namespace {

class queues_are_bounded_checker final : public observer {
 public:
  explicit queues_are_bounded_checker(world& w) : world_(w) {}

  void link_load(const std::string& host, std::size_t queued_bytes,
                 std::size_t outstanding_messages) override {
    if (queued_bytes > limits::send_queue_max)
      world_.blame("queues_are_bounded",
                   fmt::format("{} bytes wait in a send queue of {}", queued_bytes, host));
    if (outstanding_messages > limits::credit_messages)
      world_.blame("queues_are_bounded",
                   fmt::format("{} messages were delivered at {} and not taken",
                               outstanding_messages, host));
  }

 private:
  world& world_;
};

} // namespace

std::shared_ptr<observer> queues_are_bounded(world& w) {
  return std::make_shared<queues_are_bounded_checker>(w);
}

} // namespace troupe::sim::checkers
