#include "actors/node_supervisor/uplink/identity.hpp"

namespace troupe::actors::uplink {

messages::msg<messages::Identity> kept(messages::author author, const known_as& who) {
  return author.write<messages::Identity>({}, [&](auto b) {
    b.setIncarnation(who.which.value);
    b.setFollows(who.follows.value);
  });
}

known_as recall(const messages::msg<messages::Identity>& m) {
  auto known = m.read();
  return {incarnation{known->getIncarnation()}, epoch{known->getFollows()}};
}

} // namespace troupe::actors::uplink
