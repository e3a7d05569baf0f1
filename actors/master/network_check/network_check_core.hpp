#pragma once

#include "runtime/base/ids.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

/// Which node, link or machine is broken or slow, before training starts on it.
///
/// A collective over a broken node fails at every member alike: its partners look as broken as it
/// is, and excluding all of them loses good machines. So groups of two are probed in rounds, each
/// round with other partners. A group that works clears its members, since a broken node works in
/// no group. What then fails with several nodes that were cleared is broken itself, and two cleared
/// nodes that fail with each other, twice, have a broken link. A failure that has passed by the
/// next round costs no node.
///
/// Round 0 pairs neighbours; an odd node joins the last pair. Round 1 gives each suspect a cleared
/// partner and pairs the fastest with the slowest of the rest. Further rounds probe only what is
/// not decided, and links that were not used yet: of up to `policy::all_links_up_to` nodes all of
/// them, of more those of the ring of all nodes in their order, since training uses these. They may
/// leave nodes out; there are at most `policy::rounds_max`. A fault-free job of many nodes has
/// three rounds; one of two or three nodes has one.
///
/// Where no two nodes work with each other, no number of rounds shows which of them is broken. Then
/// a party that is no node of the job can: the witness, which is probed with one suspect a round
/// and only there. With two nodes it is what a third node would be. Nothing is ever found about the
/// witness itself, nor by how long a probe with it takes, and where it fails with all suspects that
/// blames none of them: what leads to it may be closed to nodes that work.
///
/// What it finds, if faults do not come and go:
/// - It calls no node faulty that works, unless every link from it to the cleared nodes that it was
///   probed with is broken (`policy::witnesses` of them, or all where there are fewer). No probe
///   tells a node that reaches no other node from a broken one, and both must leave.
/// - A broken node is locatable, and found, if its own probe fails, or if there are two nodes that
///   work, are not slow, and have a link that is neither, and the rounds suffice to probe that pair
///   and then each suspect with its witnesses. For any two faults among up to eight nodes they do.
///   Nothing of two nodes is locatable without their own probes: either may be broken, or the link;
///   unless one of them works with the witness.
/// - A broken link is locatable, and found, if a group had both its ends, both ends work, and each
///   has another link to a node that works. A slow link: where ends and those other links are not
///   slow, and slow nodes are locatable. A round uses each node once, so of a large job little more
///   is used than its ring.
/// - A slow node is locatable, and found, if more than half of the nodes are not slow and a group
///   in which neither a node nor a link is slow was probed; or by its own probe, if more than half
///   of the nodes' own probes are not slow.
/// What is not locatable is said to be undecidable, with the candidates, if a group failed for it.
namespace troupe::actors::network_check {

/// Position of a node in `history::nodes`.
using node_index = std::uint32_t;

struct probe_result {
  /// Silent: its time limit passed. That is a result like another, so no node holds up the rest.
  /// It counts as failed; it does not blame a node more, since a broken partner silences both.
  enum class kind { passed, failed, silent };
  kind what = kind::silent;
  double seconds = 0; ///< of one that passed; not finite or negative: counts as failed
  std::string why;    ///< of one that failed, or what was heard of a silent one: for people
};

struct group_result {
  std::vector<node_index> members;
  std::vector<probe_result> results; ///< by position in `members`; a missing one is silent
};

using round = std::vector<group_result>;

struct history {
  /// In order of rank; at most limits::nodes_max. The witness has the words for people that stand
  /// for it.
  std::vector<node_name> nodes;
  /// Each node's own probe, without partners: by index; absent where it had none.
  std::vector<std::optional<probe_result>> alone;
  std::vector<round> rounds; ///< that are over, with what `next_step` had asked for
  /// Which of `nodes` is none of the job's; its group is one of two, in a round of its own.
  std::optional<node_index> witness = std::nullopt;
};

struct policy {
  unsigned rounds_max = 12;
  /// Of so many nodes every link is used: as many rounds as nodes, or a few more.
  unsigned all_links_up_to = 8;
  /// Cleared nodes with which a node must fail before it is called faulty. With three, two broken
  /// links do not make a faulty node.
  unsigned witnesses = 3;
  /// Slow: needs more than this many times the median. A group of three takes a third longer than
  /// a pair by itself, so it is to be well above 4/3.
  double straggler_factor = 2;
  /// And by at least this many seconds: the times of short probes differ by chance.
  double slow_by_least = 0;
  bool exclude_straggler = false;
  /// Rounds with the witness, beside the others.
  unsigned witness_rounds_max = 8;
};

struct finding {
  enum class kind { faulty_node, faulty_link, slow_node, slow_link, undecidable };
  kind what = kind::undecidable;
  /// The node; the two ends of the link; the candidates.
  std::vector<node_index> nodes;
  double seconds = 0; ///< of what is slow: its best result, and the median of all nodes' best ones
  double median = 0;
  std::string reason; ///< one line for people
};

struct verdict {
  std::vector<finding> findings; ///< by kind, then by node
  /// Nodes that leave, ascending: faulty ones, slow ones if the policy says so, and of the ends of
  /// faulty links as few as possible: a slow one before one that is not, then the later in rank.
  std::vector<node_index> leave;
  /// Neither leaving nor a candidate of `undecidable`, ascending.
  std::vector<node_index> good;
  std::string summary; ///< one line for people
};

using groups = std::vector<std::vector<node_index>>;

/// The next round, or what the results say. A function of its arguments alone, with the work of
/// sorting the nodes once per call.
std::variant<groups, verdict> next_step(const history& so_far, const policy& with);

const char* to_string(finding::kind k);

} // namespace troupe::actors::network_check
