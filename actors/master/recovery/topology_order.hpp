#pragma once

#include "actors/limits.hpp"
#include "actors/master/recovery/ranks.hpp"
#include "actors/master/recovery/topology_source.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/time.hpp"
#include "topology/rank_order.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors {

struct topology_options {
  /// A file is read (--topology): the first world waits for it.
  bool file = false;
  /// How long the source waits for a file that is not complete.
  duration wait = limits::topology_wait;
  /// `rank_request::worse_by` (--topology-worse-by).
  std::size_t worse_by = 1;
};

/// Ranks by the network, of the nodes of one world after the other. Pure.
///
/// Without this a job's ranks go by the order in which its nodes came, and each step of each ring
/// uses the links that all racks share. Where a node hangs says a file, which the master reads, or
/// else the node itself (`Hello.switches`); a node of which neither is known hangs at the top by
/// itself.
///
/// It may fail, and no job does because of it: then ranks are as `assign_ranks` has them, and one
/// line says why. So they are as well where a node asked for a rank (--node-rank), and in worlds of
/// fewer than three nodes, whose rings are the same in any order.
class topology_order {
 public:
  topology_order(topology_options options, std::uint32_t unit, instant began)
      : options_(options), unit_(unit), until_(began + options.wait + limits::topology_read_slack) {
  }

  /// What to tell people about it.
  log::event known(const topology_answer& answer);

  /// The first world waits for the file, until then at the latest: a disk that never answers holds
  /// up no job.
  bool awaited() const { return options_.file && !settled_; }
  instant until() const { return until_; }
  /// Nothing: it is not over.
  std::optional<log::event> over(instant now);

  struct world {
    std::vector<seat> seats;
    std::optional<log::event> told;
    /// The nodes and their addresses by rank, so many in a line. Of these only what is new.
    std::vector<log::event> list;
  };
  /// As `assign_ranks`, in another order.
  world arrange(const std::vector<candidate>& nodes,
                const std::map<node_name, std::uint32_t>& previous);

 private:
  std::optional<std::size_t> find(const candidate& one) const;
  std::vector<std::string> switches_above(const candidate& one) const;
  /// Whether it did; else the seats are as they were.
  bool order_by_network(world& made, const std::vector<candidate>& nodes,
                        const std::map<node_name, std::uint32_t>& previous);
  result<topology::rank_order> order_of(const std::vector<candidate>& nodes,
                                        const std::vector<seat>& as_without,
                                        const std::map<node_name, std::uint32_t>& previous) const;
  log::event left_as_it_is(log::level how, const std::string& why);
  /// Once, and again when something else is to be told.
  std::optional<log::event> once(log::event one);
  void list_ranks(world& made, const std::vector<candidate>& nodes, log::level how);

  topology_options options_;
  std::uint32_t unit_;
  instant until_;
  bool settled_ = false;
  std::shared_ptr<const topology::network_tree> tree_; ///< null: no file has told
  std::string from_;
  /// Names of the file up to their first dot, where that says which node it is.
  std::map<std::string, std::size_t, std::less<>> short_names_;
  std::string told_last_;
  std::vector<std::size_t> listed_; ///< a digest of each line of the list
};

} // namespace troupe::actors
