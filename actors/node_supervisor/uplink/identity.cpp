#include "actors/node_supervisor/uplink/identity.hpp"

namespace troupe::actors::uplink {

messages::any_msg kept(messages::author author, const known_as& who) {
  return author
      .write<messages::Identity>({},
                                 [&](auto b) {
                                   b.setIncarnation(who.which.value);
                                   b.setFollows(who.follows.value);
                                 })
      .any();
}

known_as recall(const messages::msg<messages::Identity>& m) {
  auto known = m.read();
  return {incarnation{known->getIncarnation()}, epoch{known->getFollows()}};
}

} // namespace troupe::actors::uplink
