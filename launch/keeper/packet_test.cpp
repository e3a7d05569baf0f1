#include "launch/keeper/packet.hpp"

#include "launch/keeper/limits.hpp"
#include "messages/keeper.capnp.h"

#include <doctest/doctest.h>

#include <string>

#include <sys/socket.h>

using namespace troupe;
using namespace troupe::launch;

namespace {

messages::any_msg over(int code) {
  return messages::local<messages::SupervisorOver>("test", [&](auto b) { b.setExitCode(code); })
      .any();
}

void send_bytes(const os::unique_fd& socket, const std::string& bytes) {
  REQUIRE(::send(socket.get(), bytes.data(), bytes.size(), 0) ==
          static_cast<ssize_t>(bytes.size()));
}

} // namespace

TEST_CASE("the last words of a peer arrive although it left something unread") {
  auto [keeper, supervisor] = packet_pair();
  REQUIRE(send_packet(keeper.get(), messages::local<messages::UserSignal>("test").any()));
  REQUIRE(send_packet(supervisor.get(), over(3)));
  supervisor = {};
  const auto last = receive_packet(keeper.get(), false);
  REQUIRE(last);
  REQUIRE(last->what);
  REQUIRE(last->what->is<messages::SupervisorOver>());
  CHECK(last->what->as<messages::SupervisorOver>().read()->getExitCode() == 3);
  CHECK_FALSE(receive_packet(keeper.get(), false));
}

TEST_CASE("a packet that is no message costs itself, and none of those behind it") {
  auto [keeper, supervisor] = packet_pair();
  send_bytes(supervisor, "12345");
  send_bytes(supervisor, std::string(16, '\xff'));
  send_bytes(supervisor, std::string(limits::packet_max + 8, '\0'));
  REQUIRE(send_packet(supervisor.get(), over(3)));
  for (const char* why :
       {"5 bytes are not a whole number of words", "malformed message", "more than 4096 bytes"}) {
    CAPTURE(why);
    const auto refused = receive_packet(keeper.get(), false);
    REQUIRE(refused);
    REQUIRE_FALSE(refused->what);
    CHECK(refused->what.error().what.rfind(why, 0) == 0);
  }
  const auto last = receive_packet(keeper.get(), false);
  REQUIRE(last);
  CHECK(last->what);
}

TEST_CASE("the longest text fits") {
  auto [keeper, supervisor] = packet_pair();
  const auto why = fit_for_packet(std::string(limits::packet_max, 'x'));
  REQUIRE(send_packet(supervisor.get(),
                      messages::local<messages::SupervisorFailed>("node_supervisor", [&](auto b) {
                        b.setWhy(why);
                      }).any()));
  const auto got = receive_packet(keeper.get(), false);
  REQUIRE(got);
  CHECK(got->what);
}
