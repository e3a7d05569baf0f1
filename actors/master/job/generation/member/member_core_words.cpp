// What member_core says: to its node, to the planner, and to people.

#include "actors/master/job/generation/member/member_core.hpp"
#include "runtime/base/generations.hpp"

#include <fmt/format.h>

namespace troupe::actors {

using namespace messages;

any_msg member_core::prepare_message() {
  return author_
      .write<Prepare>(current_,
                      [&](auto b) {
                        auto proposed = world_.proposed.read();
                        const auto world = proposed->getWorld();
                        auto seat = b.initSeat();
                        seat.setMember(world.getMembers()[options_.group_rank]);
                        seat.setWorldSize(world.getWorldSize());
                        seat.setNodes(world.getMembers().size());
                        seat.setRestartCount(world.getRestartCount());
                        seat.setSinceFailureMs(world.getSinceFailureMs());
                      })
      .any();
}

any_msg member_core::stop_message() {
  return author_.write<Stop>(current_, [&](auto b) { b.setReason(stop_reason_); }).any();
}

/// In a hello a failure is part of the node's state; the planner takes it as if the lost message
/// had come.
any_msg member_core::state_as_failed(NodeState::Reader state) {
  return author_
      .write<Failed>(current_,
                     [&](auto b) {
                       b.setNode(options_.node);
                       b.setFailures(state.getFailures());
                     })
      .any();
}

/// A failure without a process, of the node itself.
/// It has no pid, by which the planner knows it from a worker's.
any_msg member_core::lost_workers() {
  return author_
      .write<Failed>(current_,
                     [&](auto b) {
                       b.setNode(options_.node);
                       auto f = b.initFailures(1)[0];
                       f.setNode(options_.node);
                       f.setMessage("the node supervisor lost its workers");
                     })
      .any();
}

std::string member_core::in_words() const {
  const auto which = count_of(current_);
  switch (phase_) {
  case phase::recalled:
    return fmt::format("waits for node {} to come back with generation {}", options_.node, which);
  case phase::preparing:
    return fmt::format("node {} prepares generation {}", options_.node, which);
  case phase::ready:
    return fmt::format("node {} is ready for generation {}", options_.node, which);
  case phase::running:
    return fmt::format("node {} runs generation {}", options_.node, which);
  case phase::stopping:
    return fmt::format("node {} ends generation {}: {}", options_.node, which, stop_reason_);
  case phase::ended:
    return "ended";
  }
  return {};
}

} // namespace troupe::actors
