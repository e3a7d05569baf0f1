#pragma once

#include "messages/membership.capnp.h"
#include "messages/msg.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/ports/keeping.hpp"

#include <memory>
#include <optional>

namespace troupe::actors::uplink {

/// Which incarnation of the node its master knows, which master the node has followed, and what
/// that one said last: a node that is cut off goes by it, and hears it from no other component.
struct known_as {
  incarnation which;
  term follows;
  std::optional<bool> dispensable = {};

  friend bool operator==(const known_as& a, const known_as& b) {
    return a.which == b.which && a.follows == b.follows && a.dispensable == b.dispensable;
  }
};

/// Outlives the uplink: with another incarnation a new uplink would be another node, and the master
/// would end the training of this one.
using identity = std::shared_ptr<known_as>;

inline constexpr ports::kept_slot<messages::Identity> identity_slot{1};

/// The form in which it outlives the supervisor as well.
messages::msg<messages::Identity> kept(messages::author author, const known_as& who);
known_as recall(const messages::msg<messages::Identity>& m);

} // namespace troupe::actors::uplink
