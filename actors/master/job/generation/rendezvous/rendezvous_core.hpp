#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/reminder.hpp"
#include "runtime/base/time.hpp"

#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors {

/// Forms one generation: a barrier between Prepare and Start.
///
/// No worker may start before all older ones are gone everywhere and the ranks' store is open;
/// else two generations write to the same files, or ranks look for peers that never come. So every
/// member answers Prepared first, the world is *sealed* in the journal, and only then told to
/// start. A sealed generation is a fact that survives the master; an unsealed one never happened.
class rendezvous_core {
 public:
  /// GenerationSealed; what follows it waits until the journal has it.
  struct record {
    messages::any_msg message;
  };
  /// For every member.
  struct start {
    messages::msg<messages::Start> message;
  };
  /// For the planner.
  /// Also for the catalog, which learns from it which node has which ranks and so owes which
  /// shards.
  struct sealed {
    messages::msg<messages::Sealed> message;
  };
  /// Membership gives the node up; it may join anew.
  /// The member of the node hears of the loss and ends, and with it this generation.
  struct evict {
    node_name node;
    std::string reason;
  };
  struct note {
    log::event event;
  };
  /// Nothing is left to do.
  struct done {};
  using effect = std::variant<record, start, sealed, evict, note, done>;
  using effects = std::vector<effect>;

  rendezvous_core(messages::msg<messages::WorldProposed> world, messages::author author,
                  instant now);

  /// A member's node is ready. Repeats mean nothing; the first member's names the store.
  effects prepared(instant now, const messages::msg<messages::Prepared>& m);
  /// Only tells the user: the limits of nodes are their members'.
  effects tick(instant now);
  std::optional<instant> next_wakeup() const { return waiting_.next(); }
  std::string in_words() const;

 private:
  /// Once, when the last node is ready.
  void seal(effects& out, instant now);

  /// What is sealed is what was prepared: the same world, word for word.
  messages::msg<messages::WorldProposed> world_;
  messages::author author_;
  generation current_;
  /// What the barrier took is told to the user: it is the part of a restart that nodes decide.
  instant since_;
  std::vector<node_name> members_; ///< in order of group rank
  /// Names and not a count: a node says Prepared again on each new link.
  std::set<node_name> prepared_;
  /// Of group rank 0's node, as the world names it: what the node says itself is not needed.
  std::string store_address_;
  /// A free one of that node, so no other component knows it before the node has answered.
  std::uint16_t store_port_ = 0;
  bool store_hosted_ = false; ///< by the node supervisor, else by a worker
  /// From here on nothing may change: the record may be with the journal already.
  bool sealed_ = false;
  reminder waiting_;
};

} // namespace troupe::actors
