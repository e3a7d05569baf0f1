#pragma once

#include "runtime/base/ids.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

/// A node as rank assignment sees it.
/// What it says in its hello, which may differ from node to node; and when it came.
struct candidate {
  node_name node;
  std::string address;
  std::uint32_t slots = 0;
  /// As its launcher was told (--node-rank, or a list of the scheduler).
  std::optional<std::uint32_t> wanted_rank;
  std::uint64_t arrival = 0; ///< order of joining; breaks ties
  duration stop_within{};    ///< how long its workers may take to end
  std::string role;          ///< of its workers (--role)
  incarnation which{};
  std::uint16_t bulk_port = 0;            ///< where other nodes dial its bulk links, at `address`
  std::vector<std::string> switches = {}; ///< above it (--switches), the top of the network first
  std::vector<std::string> machine = {};  ///< other names of the machine below it
  bool rank_is_found = false; ///< the wanted one, in a scheduler's variables: no word of the user's
};

/// In the journal as well, so a later master knows which supervisor has which ranks.
struct seat {
  node_name node;
  std::string address;
  std::uint32_t slots = 0;
  /// The number of the node; `first_rank` is that of its first worker.
  std::uint32_t group_rank = 0;
  global_rank first_rank = 0;
  std::uint32_t first_role_rank = 0; ///< among the workers of the same role, in order of rank
  std::uint32_t role_world_size = 0; ///< workers of the same role
  incarnation which{};
  /// Which rank the node with rank 0 would have had, had the network not been looked at.
  std::uint32_t master_index = 0;
  std::uint16_t bulk_port = 0; ///< where other nodes dial its bulk links, at `address`
};

/// Group ranks for the next world: a node that asked for a rank has it; members of the previous
/// world keep their order, newcomers fill the holes and then the end, in order of arrival. The
/// result is dense, sorted by group rank, and a pure function of its arguments. `previous` maps
/// nodes (also gone ones) to their last group rank.
std::vector<seat> assign_ranks(std::vector<candidate> candidates,
                               const std::map<node_name, std::uint32_t>& previous);

} // namespace troupe::actors
