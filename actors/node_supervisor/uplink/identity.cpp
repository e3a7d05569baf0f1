#include "actors/node_supervisor/uplink/identity.hpp"

namespace troupe::actors::uplink {

messages::msg<messages::Identity> kept(messages::author author, const known_as& who) {
  return author.write<messages::Identity>({}, [&](auto b) {
    b.setIncarnation(who.which.value);
    b.setFollows(who.follows.value);
    if (who.dispensable)
      b.initHeard().setOthersSuffice(*who.dispensable);
  });
}

known_as recall(const messages::msg<messages::Identity>& m) {
  auto known = m.read();
  known_as who{incarnation{known->getIncarnation()}, term{known->getFollows()}};
  if (known->hasHeard())
    who.dispensable = known->getHeard().getOthersSuffice();
  return who;
}

} // namespace troupe::actors::uplink
