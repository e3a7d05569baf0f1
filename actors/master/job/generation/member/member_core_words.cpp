// What member_core says: to its node, to the planner, and to people.

#include "actors/limits.hpp"
#include "actors/master/job/generation/member/member_core.hpp"
#include "runtime/base/generations.hpp"

#include <fmt/format.h>

#include <set>

namespace troupe::actors {

using namespace messages;

namespace {

/// The next one in rank, and two that are far away: racks follow one another in rank.
void write_neighbours(Seat::Builder seat, capnp::List<Member>::Reader members,
                      std::uint32_t own_rank) {
  const auto count = members.size();
  std::set<std::uint32_t> others;
  for (const auto distance : {1u, count / 3, count - count / 3})
    if (const auto rank = (own_rank + distance) % count; rank != own_rank)
      others.insert(rank);
  static_assert(limits::neighbours_max >= 3);
  auto all = seat.initNeighbours(static_cast<unsigned>(others.size()));
  unsigned n = 0;
  for (const auto rank : others) {
    all[n].setNode(members[rank].getNode());
    all[n].setAddress(members[rank].getAddress());
    all[n++].setPort(members[rank].getBulkPort());
  }
}

} // namespace

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
                        write_neighbours(seat, world.getMembers(), options_.group_rank);
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
