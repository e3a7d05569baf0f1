#pragma once

#include "actors/master/recovery/failure_ledger.hpp"
#include "actors/master/recovery/start_pause.hpp"
#include "messages/journal.capnp.h"
#include "runtime/base/restart_budget.hpp"
#include "runtime/base/time.hpp"
#include "runtime/ports/cluster.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace troupe::actors {

/// The budgets of a job, as one ladder. A failure of workers takes the lowest rung that is left:
///
///     restart   all workers, on the same nodes: --max-restarts times for each node
///     replace   the node leaves, and another machine takes its place: one that the cluster gives,
///               as often as its own budget allows, or one that is here and not needed
///     end       the job ends, with the budget that was the last
///
/// Some budgets end it from any rung: --job-restarts (of both rungs), --no-progress-limit, and one
/// failure at the start on several machines, as no machine mends that. A failure that parts the job
/// from a node for its class (broken hardware) begins at the second rung. A lost node takes no
/// rung; to wait for another one is a relaunch (--node-relaunches), and ends when the cluster gives
/// none. Pure.
class restart_ladder {
 public:
  struct options {
    std::uint32_t of_each_node = 0;
    std::optional<std::uint32_t> of_job, without_progress_max, relaunches_max;
    duration progress_after{};
    start_pause_options start_pause;
    bool cluster_replaces = false;
  };
  enum class rung { restart, replace, end };
  struct step {
    rung is = rung::restart;
    std::string why;            ///< the budget that is used up, with its option
    duration pause{};           ///< before the next start
    std::uint8_t exit_code = 0; ///< of launchers, if the job ends; 0: as ever
    std::uint32_t used = 0;     ///< of the node's own budget, this failure included
  };

  explicit restart_ladder(options o);

  /// Workers have failed after so long a time of work; their node pays. `spare`: a world can be
  /// formed without that node. `whose`: of which node, for a job that has several; else empty.
  step failed(instant now, const failure_ledger::failure& root, duration worked, bool spare,
              const std::string& whose);
  /// A generation has ended otherwise.
  void ended(duration worked) { start_.ended(worked); }
  /// Whether a node leaves that is given up for its class: another machine can take its place.
  bool may_replace(bool spare) const { return options_.cluster_replaces || spare; }

  // Nodes that are waited for.
  void begin_gathering() { waited_for_ = 0; }
  /// So many are missing. Why the wait ends before it begins; nothing: it may go on.
  std::optional<std::string> wait_for(std::uint32_t missing);
  /// The next world is formed: how many nodes it had to wait for.
  std::uint32_t take_waited();
  void supplied(ports::cluster::supply s) { supply_ = std::move(s); }
  /// Why no world of so many nodes can be formed any more, by what the cluster gives to a job that
  /// may have `nodes_max`: what it says of another size is out of date.
  std::optional<std::string> no_more(std::uint32_t nodes_min, std::uint32_t nodes_max) const;

  /// What a node was told, where the master was told nothing.
  void allow_at_least(std::uint32_t of_each_node) { nodes_.allow_at_least(of_each_node); }
  bool holds(instant now) { return start_.holds(now); }
  std::optional<instant> holds_until() const { return start_.until(); }

  /// What the next master must know of a step that is no end, for this node.
  void write(messages::RestartCounted::Builder out, const node_name& node, const step& taken) const;
  void recall(messages::RestartCounted::Reader counted);
  void recall_count(std::uint32_t of_job) { count_ = of_job; }
  void recall_relaunches(std::uint32_t relaunches);

  std::uint32_t count() const { return count_; } ///< of all nodes
  std::uint32_t used(const node_name& node) const { return nodes_.used(node); }
  std::uint32_t allowed() const { return nodes_.allowed(); }
  std::uint32_t relaunches() const { return relaunches_; }
  const std::map<node_name, unsigned>& used() const { return nodes_.used(); }
  /// Behind "restarting"; empty without a pause.
  std::string pause_in_words(duration pause) const { return start_.in_words(pause); }
  /// Each budget with its rung.
  std::string in_words() const;

 private:
  bool is_same_everywhere() const;
  std::string used_up_in_words(const std::string& whose) const;

  options options_;
  /// By name: a launcher that is started again has the budget of the one before.
  restarts_by_name nodes_;
  std::uint32_t count_ = 0;
  std::uint32_t without_progress_ = 0; ///< up to the last counted restart
  start_pause start_;
  /// What a node has left for that the cluster did not replace: the program's failure, or a class.
  std::string left_for_;
  /// On record with each proposal, since there is no other trace of it. Of nodes and not of
  /// restarts: one wait may be for several, and it is counted when it has been worth it.
  std::uint32_t relaunches_ = 0;
  std::uint32_t waited_for_ = 0; ///< how many nodes at most were missing at once
  std::optional<ports::cluster::supply> supply_;
};

} // namespace troupe::actors
