#pragma once

#include "actors/limits.hpp"
#include "actors/master/network_check/network_check_core.hpp"
#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::actors {

/// What is checked, and against which bounds.
struct network_check_options {
  /// Nodes are checked before they may take part.
  bool wanted = false;
  network_check::policy policy{12, 8, 3, 2, limits::check_slow_by_least, false, 8};
  duration within = limits::check_probe_within; ///< each probe
  std::uint64_t bytes = limits::check_bytes;
  std::uint32_t repeats = limits::check_repeats;
  /// Where devices do it by their own library.
  std::uint64_t device_bytes = limits::check_device_bytes;
  std::uint32_t device_repeats = limits::check_device_repeats;
  /// Bandwidths among all good nodes are measured for each of these sizes. Empty: they are not.
  std::vector<std::uint64_t> perf_test_sizes;
  struct box_pair {
    std::uint32_t first = 0, second = 0;
  };
  /// Pairs of devices of which the switch between them is checked.
  std::vector<box_pair> box_pairs;
  std::uint64_t box_bandwidth_min = 0; ///< MB/s
  std::uint32_t box_channels_min = 0;
  /// The master's own part in groups; nodes find it at the master's host.
  struct third_party {
    node_name name; ///< no node has it
    std::uint16_t port = 0;
    /// Whether a node of this address is on the master's machine: then the master sees what that
    /// machine sees, and is no third party.
    std::function<bool(const std::string&)> is_beside;
  };
  std::optional<third_party> witness = std::nullopt;
};

/// Carries out one check after the other: has nodes probed by themselves, then in groups, round by
/// round as network_check_core wants them, and answers with what follows.
///
/// Each step ends when all have answered or the time for it is over; once half of them have, the
/// others' time shrinks to a multiple of theirs. So a link that is cut costs seconds and never the
/// whole limit, which has to be long enough for the slowest driver. A driver that is slow to begin
/// looks like one that hangs, however: a node whose own probe is late is waited for up to the
/// limit, while the others go on, and the first group of each node's devices has all of it.
///
/// The master is called as a witness once a verdict is undecidable without one, and only where no
/// node of the check is on its machine.
class check_run_core {
 public:
  struct say {
    node_name to;
    messages::any_msg message;
  };
  /// For the master's own `witness`.
  struct ask_witness {
    messages::any_msg message;
  };
  /// The check is over.
  struct answer {
    messages::msg<messages::NodesChecked> message;
  };
  /// The machine is broken.
  struct mark {
    node_name node;
    std::string address;
    std::string reason;
  };
  struct note {
    log::event event;
  };
  using effect = std::variant<say, ask_witness, answer, mark, note>;
  using effects = std::vector<effect>;

  /// Checks have the numbers from `first_number` on.
  check_run_core(messages::author author, network_check_options options,
                 std::uint64_t first_number);

  /// Takes the place of one that is under way, which gets no answer.
  effects wanted(instant now, const messages::msg<messages::CheckWanted>& m);
  effects node_probed(instant now, const messages::msg<messages::NodeProbed>& m);
  effects group_probed(instant now, const messages::msg<messages::GroupProbed>& m);
  effects node_lost(instant now, const messages::msg<messages::NodeLost>& m);
  effects tick(instant now);
  std::optional<instant> next_wakeup() const;
  std::string in_words() const;

 private:
  enum class step { alone, alone_again, groups, late, perf_test };
  using index = network_check::node_index;

  struct node {
    std::string address;
    std::uint16_t port = 0;
    bool trained = false;
    bool lost = false;
    double best = 0; ///< seconds of its best group; 0: none
    std::uint64_t latency_us = 0;
    // What its devices can take part in a group by.
    std::string library;
    std::uint32_t ranks = 0;
    bool has_begun = false; ///< was asked to reduce by it
  };
  /// How a group reduces and gathers: by the devices' library, or by its members' ring.
  struct means {
    std::string library; ///< empty: by the ring
    std::uint32_t ranks = 0;
  };
  struct check {
    instant began;
    bool alone = false; ///< others train
    std::vector<node> nodes;
    std::map<node_name, index> by_name;
    network_check::history results;
    network_check::policy policy; ///< with more rounds for nodes that were late
    step at = step::alone;
    std::size_t count = 0;   ///< of nodes; the witness comes behind them
    std::uint32_t round = 0; ///< counts all requests to groups
    network_check::round groups;
    /// Of perf_test: among so many nodes, and what these said.
    std::size_t measured_nodes = 0;
    means measured_by;
    std::vector<messages::msg<messages::GroupProbed>> measured;
    /// Whose own probe is not over, up to `alone_until`: the seconds of their first answer, if they
    /// are asked once more.
    std::map<index, std::optional<double>> late;
    instant alone_until;
    // Of the step.
    instant step_began, until;
    std::map<std::pair<std::size_t, index>, bool> open; ///< group (0 if alone) and node
    std::vector<bool> begin_devices; ///< by group: of some member's devices it is the first
    std::size_t devices_open = 0;    ///< members of such groups that have not answered
    std::size_t asked = 0;
    std::optional<network_check::verdict> said;
  };

  const node_name& name(index n) const { return now_->results.nodes[n]; }
  bool is_witness(index n) const { return n == now_->results.witness; }
  /// As messages name it.
  const node_name& name_on_links(index n) const {
    return is_witness(n) ? options_.witness->name : name(n);
  }
  std::optional<index> find(const std::string& name) const;
  void begin_step(instant now, step which, duration within);
  means means_of(const std::vector<index>& members) const;
  void ask_groups(effects& out, instant now, const network_check::groups& wanted);
  void write_members(messages::GroupProbeWanted::Builder to, const std::vector<index>& members,
                     std::uint32_t place) const;
  void ask_ring(effects& out, std::size_t group, const std::vector<index>& members,
                const std::vector<std::uint64_t>& sizes, std::uint32_t repeats, duration within);
  void answered(effects& out, instant now, std::size_t group, index n);
  void end_step(effects& out, instant now);
  void next_round(effects& out, instant now);
  bool call_witness();
  void heard_late(messages::GroupProbed::Reader r, index n);
  void measure_all(effects& out, instant now);
  void conclude(effects& out, instant now);

  // Each by itself (check_run_core_alone.cpp).
  void ask_alone(effects& out, instant now, const std::vector<index>& nodes, step which);
  messages::msg<messages::NodeProbeWanted> node_question(bool trained);
  void after_alone(effects& out, instant now);
  double usual_seconds() const;
  void await_late(effects& out, instant now);
  void late_answered(effects& out, instant now, index n, network_check::probe_result found);
  void no_longer_late(effects& out, instant now, index n);
  bool waits_for_late(instant now);
  void settle_late(instant now);

  // Words (check_run_words.cpp).
  log::event begun_in_words() const;
  std::string speaker_in_words(const std::string& name_on_links) const;
  log::event group_failed_in_words(messages::GroupProbed::Reader r) const;
  log::event silent_in_words(const node_name& silent, instant now) const;
  log::event late_in_words(instant now) const;
  log::event in_words(const network_check::finding& f) const;
  void tell_findings(effects& out) const;
  void tell_nodes(effects& out) const;
  void tell_bandwidths(effects& out) const;
  log::event concluded_in_words(instant now) const;
  messages::msg<messages::NodesChecked> answer_message();

  messages::author author_;
  const network_check_options options_;
  std::uint64_t number_ = 0;
  std::optional<check> now_;
};

} // namespace troupe::actors
