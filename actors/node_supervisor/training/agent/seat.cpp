#include "actors/node_supervisor/training/agent/seat.hpp"

#include <algorithm>

namespace troupe::actors {

using namespace messages;

namespace {

/// So that no sum of times overflows, whatever a message says.
constexpr std::uint64_t failure_age_max_ms = 1'000'000'000;

own_seat of_member(Member::Reader m) {
  own_seat own;
  own.address = m.getAddress().cStr();
  own.group_rank = m.getGroupRank();
  own.first_rank = m.getFirstRank();
  own.first_role_rank = m.getFirstRoleRank();
  own.role_world_size = m.getRoleWorldSize();
  own.master_index = m.getMasterIndex();
  return own;
}

} // namespace

own_seat seat_in(Seat::Reader says) {
  auto own = of_member(says.getMember());
  own.world_size = says.getWorldSize();
  own.nodes = says.getNodes();
  own.restart_count = says.getRestartCount();
  own.since_failure =
      std::chrono::milliseconds(std::min(says.getSinceFailureMs(), failure_age_max_ms));
  return own;
}

void write_seat(Seat::Builder out, const own_seat& own, const node_name& node,
                std::uint32_t slots) {
  auto m = out.initMember();
  m.setNode(node);
  m.setAddress(own.address);
  m.setSlots(slots);
  m.setGroupRank(own.group_rank);
  m.setFirstRank(own.first_rank);
  m.setFirstRoleRank(own.first_role_rank);
  m.setRoleWorldSize(own.role_world_size);
  m.setMasterIndex(own.master_index);
  out.setWorldSize(own.world_size);
  out.setNodes(own.nodes);
  out.setRestartCount(own.restart_count);
}

std::optional<own_seat> seat_in(Prepare::Reader says, const node_name& node) {
  if (says.hasSeat() && node == says.getSeat().getMember().getNode().cStr())
    return seat_in(says.getSeat());
  const auto world = says.getWorld();
  for (const auto m : world.getMembers()) {
    if (node != m.getNode().cStr())
      continue;
    auto own = of_member(m);
    own.world_size = world.getWorldSize();
    own.nodes = world.getMembers().size();
    own.restart_count = world.getRestartCount();
    return own;
  }
  return std::nullopt;
}

} // namespace troupe::actors
