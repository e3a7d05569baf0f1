#pragma once

#include "messages/kinds.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::actors {

/// This node's part in one generation: where its ranks begin, and how large the world is. Of the
/// other nodes a node knows nothing but their number.
struct own_seat {
  std::string address; ///< Where others reach this node, as the master knows it.
  std::uint32_t group_rank = 0;
  global_rank first_rank = 0;
  std::uint32_t first_role_rank = 0;
  std::uint32_t role_world_size = 0; ///< 0: the master does not count roles.
  std::uint32_t world_size = 0;
  std::uint32_t nodes = 0;
  std::uint32_t restart_count = 0;
  std::uint32_t master_index = 0;
  /// When the seat was given: since the failure that led to this generation; 0: none did.
  duration since_failure{};
};

own_seat seat_in(messages::Seat::Reader says);
void write_seat(messages::Seat::Builder out, const own_seat& own, const node_name& node,
                std::uint32_t slots);

/// A master before revision 1 sends the whole world instead of the seat. Nothing, if the message
/// has no seat for `node`.
std::optional<own_seat> seat_in(messages::Prepare::Reader says, const node_name& node);

} // namespace troupe::actors
