#pragma once

#include "actors/master/recovery/ranks.hpp"
#include "actors/master/recovery/world_sizes.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/time.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors {

/// What the check before the start has found of a node; where none is asked for, all stay as they
/// are first.
enum class node_standing : std::uint8_t {
  unchecked,
  alone,   ///< it works by itself; it was not probed with others
  good,    ///< or it has trained already
  suspect, ///< it takes no part until it is checked with other nodes than those it failed with
};

/// The nodes that could take part, and what the largest world is that they make. Pure.
///
/// A node is here (it has a link) or away (it may come back); one that is lost is forgotten. Claims
/// to a place are ordered: members of the last world by their rank, then nodes that asked for a
/// rank, then by arrival; so a world that shrinks keeps its order, and a newcomer displaces no
/// member.
class roster {
 public:
  explicit roster(world_sizes sizes) : sizes_(std::move(sizes)), ranks_max_(sizes_.nodes_max) {}

  /// How large worlds may be from now on. Ranks that could be asked for before still can.
  void resize(std::uint32_t nodes_min, std::uint32_t nodes_max);
  /// Whether a world of such sizes is possible at all with nodes like those that are here.
  bool possible(const world_sizes& sizes) const;

  /// Why the node cannot have the rank it asks for; empty if it can.
  std::string validation_error(const candidate& c) const;
  /// The node has a link. Returns whether it is new.
  bool present(instant now, candidate who);
  /// Returns whether that is news.
  bool away(const node_name& node);
  /// Lost, or given up. The last world still knows its name.
  void forget(instant now, const node_name& node);
  /// A member of the last world of an earlier master, of which nothing has been heard yet.
  void expect(candidate who);

  bool knows(const node_name& node) const { return nodes_.count(node) != 0; }
  bool is_away(const node_name& node) const;
  std::optional<duration> stop_within(const node_name& node) const;
  /// As others reach it; empty if it is not known.
  std::string address(const node_name& node) const;
  std::vector<node_name> everyone() const;
  /// After a restart of the master: those that have not come back when their time is over.
  std::vector<node_name> all_away() const;
  std::size_t size() const { return nodes_.size(); }
  /// Those that could take part.
  std::size_t here() const { return nodes_.size() - away_count_ - suspects_here(); }
  bool any_away() const { return away_count_ > 0; }
  instant last_arrival() const { return last_arrival_; }
  /// Several nodes were lost since then, or one was and a member is away, which may be lost next.
  bool losses_come_together(instant since) const;
  /// Until when another node that is lost with them would show: `quiet` after a connection that was
  /// closed, `beat` after a node that fell silent. There must be a loss.
  instant others_show_until(duration quiet, duration beat) const;

  /// Of this life of the node; what is told of another one is dropped.
  void set_standing(const node_name& node, incarnation which, node_standing s);
  node_standing standing(const node_name& node) const;
  const std::set<node_name>& suspects() const { return suspects_; }
  /// Other nodes are here than those with which they failed.
  void forget_suspicions();
  /// All are to be checked again.
  void forget_checks();

  /// The nodes that are here, but for `without` and suspects, in the order of their claims.
  std::vector<candidate> claimants(const node_name& without = {}) const;
  /// How many of the first of them make the largest world; 0: none.
  std::uint32_t largest_world(const std::vector<candidate>& of) const;
  /// With how many nodes no other node could take part; taking all nodes to be alike.
  std::uint32_t most_nodes() const;
  /// Whether a world could be formed if one node were lost; taking all nodes to be alike.
  bool one_is_dispensable() const;
  /// Whether a world can be formed without it, or could if those that are away come back.
  bool is_spare(const node_name& node) const;
  /// The fewest nodes of any world; taking all nodes to be alike.
  std::uint32_t least() const;
  /// The nodes that are missing before any world can be formed.
  std::uint32_t missing() const;

  /// The world that was sealed last decides the claims to the next.
  void remember_world(const std::vector<seat>& world);
  const std::map<node_name, std::uint32_t>& last_group_ranks() const { return last_group_ranks_; }
  /// A node is away that was in the last world, or may have been: its return is worth a wait.
  bool a_member_is_away() const;

 private:
  /// A node that is away keeps its entry, with its claims, until membership gives it up.
  struct entry {
    candidate who;
    bool away = false;
    node_standing standing = node_standing::unchecked;
  };
  std::size_t suspects_here() const;

  world_sizes sizes_;
  std::uint32_t ranks_max_; ///< --node-rank is below that
  std::map<node_name, entry> nodes_;
  std::size_t away_count_ = 0; ///< among nodes_
  std::set<node_name> suspects_;
  /// Counted and not taken from a clock: two nodes never arrive at the same time.
  std::uint64_t arrivals_ = 0;
  /// Of a node that was not known: returns do not count.
  instant last_arrival_{};
  /// The last loss, and the last one of another node: one that comes and goes is no group.
  std::optional<instant> last_loss_, loss_before_;
  std::optional<instant> last_silence_; ///< the last loss of a node that had not been away
  node_name last_lost_;
  /// Beside nodes_, so that a hello is judged without walking all nodes.
  std::map<std::uint32_t, node_name> wanted_ranks_;
  std::map<node_name, std::uint32_t> last_group_ranks_; ///< empty before the first world
  /// For nodes of so many slots.
  mutable std::optional<std::pair<std::uint32_t, std::uint32_t>> most_nodes_;
};

} // namespace troupe::actors
