#pragma once

#include "actors/master/network_check/network_check_core.hpp"

#include <limits>

namespace troupe::actors::network_check {

/// What a group's results come to. `slow`: it passed, and is no reference for others.
enum class outcome { failed, slow, fast };

/// What is known of the link to one partner, from groups of two, and from groups of three that were
/// fast: one that was not does not say which of its links or members it was.
struct met {
  node_index partner = 0;
  outcome what = outcome::failed; ///< the best of several
  double seconds = 0;             ///< unless failed
  bool answered = false;          ///< this node did, in a group that failed
  unsigned tries = 1;
};

struct node_evidence {
  bool here = true;     ///< no: it is faulty by its own probe and is in no group
  bool passed = false;  ///< in a group: the node works
  bool cleared = false; ///< in a fast group: the node works and is not slow
  double best = std::numeric_limits<double>::infinity(); ///< of the groups' slowest members
  std::vector<met> partners;                             ///< at most two a round
  unsigned witnesses = 0; ///< cleared partners with which it was not fast
  bool decided = false;   ///< enough of those, so it is faulty or slow
};

struct evidence {
  std::vector<node_evidence> nodes;
  std::vector<std::vector<node_index>> threes; ///< groups of three that were not fast
  std::vector<outcome> of_threes;
  std::optional<node_index> witness;
  std::size_t here = 0;    ///< but for the witness
  std::size_t cleared = 0; ///< and the witness, where it works with a node
  double median = 0;       ///< of the nodes' best results
  /// What fast is measured by: the quarter of the nodes that is quickest, since a slow node in each
  /// of many groups slows half of all results and more.
  double quick = 0;

  const met* between(node_index a, node_index b) const;
  bool is_witness(node_index n) const { return witness && *witness == n; }
  /// Nothing is known of it but its failures, and more of these are needed to call it faulty.
  bool is_open_suspect(node_index n) const {
    const auto& of = nodes[n];
    return of.here && !of.passed && !of.decided && !is_witness(n);
  }
};

bool passed(const probe_result& r);
bool is_slow(double seconds, double reference, const policy& with);
/// The element with as many below it as `part` of all says; 0 for none.
double quantile(std::vector<double> values, double part);

evidence weigh(const history& so_far, const policy& with);

/// A link whose ends work, and that was used only in a group of three that was not fast.
bool is_open_link(const evidence& e, std::size_t three, node_index a, node_index b);

/// A link that has failed, though both its ends work: faulty if it failed twice. One failure may
/// have passed by the next round, and must not cost a node. One to the witness never is.
bool failed_alone(const evidence& e, node_index a, const met& m);
inline constexpr unsigned link_failures_needed = 2;

} // namespace troupe::actors::network_check
