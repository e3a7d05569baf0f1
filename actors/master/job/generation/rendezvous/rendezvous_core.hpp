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
  struct sealed {
    messages::msg<messages::Sealed> message;
  };
  /// Membership gives the node up; it may join anew.
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

  rendezvous_core(messages::msg<messages::Prepare> world, messages::author author, instant now);

  /// A member's node is ready. Repeats mean nothing; the first member's names the store.
  effects prepared(instant now, const messages::msg<messages::Prepared>& m);
  effects tick(instant now);
  std::optional<instant> next_wakeup() const { return waiting_.next(); }
  std::string in_words() const;

 private:
  void seal(effects& out, instant now);

  messages::msg<messages::Prepare> world_;
  messages::author author_;
  generation current_;
  instant since_;
  std::vector<node_name> members_; ///< in order of group rank
  /// Names and not a count: a node says Prepared again on each new link.
  std::set<node_name> prepared_;
  std::string store_address_;
  std::uint16_t store_port_ = 0;
  bool store_hosted_ = false; ///< by the node supervisor, else by a worker
  /// From here on nothing may change: the record may be with the journal already.
  bool sealed_ = false;
  reminder waiting_;
};

} // namespace troupe::actors
