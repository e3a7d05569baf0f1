#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/phase_of.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors {

/// Asks other nodes of the world whether they have the master, while this node has not; and answers
/// them.
///
/// A node whose master does not answer looks the same from inside whether the master is away or the
/// node is cut off. In the first case its workers are to train on; in the second its ranks have
/// been given to others by now, and each second that it trains on two processes are one rank. Its
/// neighbours know: they have the master or they have not, and those of a node that is cut off do
/// not answer at all.
///
///     calm --the master is missed--> asking --a neighbour has it, or none answers--> told
///       ^                               |                                             |
///       +------------------ it is not missed any more --------------------------------+
///
/// Two answers look like "it is there" and are not. A neighbour may not have noticed yet that the
/// master is gone, so it is asked half a lease later than this node missed it. And when the network
/// is back the first of them have the master again while the others still dial: so a link counts
/// only if it is older than the absence. And a neighbour that stood still itself answers before it
/// looks: so it is asked twice. Any other answer, and any sign of life, says that this node is not
/// cut off.
class neighbours_core {
 public:
  using link_id = std::uint64_t;

  enum class phase {
    calm,   ///< The master is there, or nothing depends on it.
    asking, ///< It is missed.
    told,   ///< The uplink has heard what the neighbours say.
  };
  static constexpr phase_table<phase> phases{
      "a node's neighbours",
      {
          {phase::calm, "calm", {phase::asking}},
          {phase::asking, "asking", {phase::calm, phase::told}},
          {phase::told, "told", {phase::calm}},
      }};

  /// Answered with connected() or not_connected().
  struct dial {
    link_id link = 0;
    std::string host;
    std::uint16_t port = 0;
  };
  struct say {
    link_id link = 0;
    messages::any_msg message;
  };
  struct close {
    link_id link = 0;
    std::string reason;
  };
  /// For the uplink.
  struct tell {
    messages::msg<messages::NeighboursSaid> message;
  };
  using effect = std::variant<dial, say, close, tell>;
  using effects = std::vector<effect>;

  neighbours_core(messages::author author, duration lease)
      : author_(std::move(author)), lease_(lease) {}

  /// From the uplink, whenever that changes.
  effects reach(instant now, const messages::msg<messages::MasterReach>& m);

  // Links. Numbers of those that come in are the caller's, from `first_own_link` down.
  static constexpr link_id first_own_link = link_id{1} << 63;
  effects arrived(instant now, link_id link);
  effects connected(instant now, link_id link);
  /// `answers`: its machine does, and the node does not.
  effects not_connected(instant now, link_id link, bool answers);
  effects said(instant now, link_id link, const messages::any_msg& m);
  effects gone(instant now, link_id link);

  effects tick(instant now);
  std::optional<instant> next_wakeup() const;

  phase current_phase() const { return phase_; }
  std::string in_words() const;

 private:
  struct neighbour {
    node_name node;
    std::string host;
    std::uint16_t port = 0;
    link_id link = 0; ///< dialled, or there; 0: none
    instant dialled_at{};
    bool had_it = false; ///< as it said the last time that it was asked
  };

  neighbour* at(link_id link);
  void become_calm(effects& out);
  void ask(effects& out, instant now);
  void answered(effects& out, instant now, neighbour& by,
                const std::optional<messages::msg<messages::MasterKnown>>& with);
  void tell_uplink(effects& out, const node_name& has_it);
  messages::msg<messages::MasterKnown>
  answer_to(instant now, const messages::msg<messages::MasterSought>& question);
  instant silent_at() const;
  void check() const;

  messages::author author_;
  const duration lease_; ///< of links to the master
  phase_of<phases> phase_{phase::calm};
  std::optional<instant> linked_since_; ///< this node's uplink has the master
  std::uint64_t follows_ = 0;           ///< the term of it, or of the last one
  std::vector<neighbour> neighbours_;
  std::uint64_t outage_ = 0; ///< as the uplink counts them
  instant missed_at_{};      ///< asking
  instant answered_at_{};    ///< asking: the last sign of life of any, or `missed_at_`
  instant ask_at_{};         ///< asking: the next round
  link_id last_own_ = first_own_link;
  /// Links that others have dialled, and until when each may be here.
  std::map<link_id, instant> asked_by_;
};

} // namespace troupe::actors
