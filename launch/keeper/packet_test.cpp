#include "launch/keeper/packet.hpp"

#include <doctest/doctest.h>

using namespace troupe::launch;

TEST_CASE("the last words of a peer arrive although it left something unread") {
  auto [keeper, supervisor] = packet_pair();
  REQUIRE(send_packet(keeper.get(), about(packet::kind::ended, 1, 9)));
  REQUIRE(send_packet(supervisor.get(), about(packet::kind::over, 0, 3)));
  supervisor = {};
  const auto last = receive_packet(keeper.get(), false);
  REQUIRE(last);
  CHECK(last->what.what == packet::kind::over);
  CHECK(last->what.number == 3);
  CHECK_FALSE(receive_packet(keeper.get(), false));
}
