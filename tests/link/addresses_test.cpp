// From which of its addresses a machine dials, and which addresses need an interface.

#include "runtime/os/net/addresses.hpp"

#include "tests/link/asio_world.hpp"

namespace {

using namespace troupe;
using namespace troupe::testing;

boost::asio::ip::address address(const char* text) {
  return *os::numeric(text);
}

/// "127.0.0.3" of the peer that dials from there.
std::string seen_when_dialling_from(const std::string& own) {
  asio_world master;
  accepted_links accepted;
  const auto listener = *master.transport().listen({"127.0.0.1", 0}, accepted.acceptor());
  auto options = calm_options();
  options.dial_from = own;
  asio_world node(std::move(options));
  auto answer = dial(node, listener->where());
  if (!answer)
    return answer.error().what;
  REQUIRE(master.until([&accepted] { return !accepted.names().empty(); }));
  const auto seen = accepted.link(0)->peer();
  return seen.substr(0, seen.rfind(':'));
}

} // namespace

TEST_CASE("a link comes from the address that was asked for, where that is possible") {
  CHECK(seen_when_dialling_from("") == "127.0.0.1");
  CHECK(seen_when_dialling_from("127.0.0.3") == "127.0.0.3");
  // Not this machine's, of another family, or an unknown name.
  for (const char* useless : {"192.0.2.1", "::1", "no.such.host.invalid", "fe80::1%nowhere"}) {
    CAPTURE(useless);
    CHECK(seen_when_dialling_from(useless) == "127.0.0.1");
  }
}

TEST_CASE("the source of a dial is of the same family, and the loopback interface stays within") {
  const std::vector own{address("127.0.0.1"), address("10.2.0.2"), address("fe80::2")};
  CHECK(os::source_for(address("10.9.0.1"), own) == address("10.2.0.2"));
  CHECK(os::source_for(address("127.0.0.2"), own) == address("127.0.0.1"));
  CHECK(os::source_for(address("fd00::1"), own) == address("fe80::2"));
  CHECK_FALSE(os::source_for(address("::1"), own));
  CHECK_FALSE(os::source_for(address("10.9.0.1"), {}));
  CHECK(os::own_addresses("localhost").size() > 0);
  CHECK(os::own_addresses("").empty());
}

TEST_CASE("a link-local address without its interface is told so") {
  const auto wrong = [](const std::string& host) {
    return os::zone_validation_error(host, *os::numeric(host)).value_or("");
  };
  CHECK(wrong("fe80::1%lo") == "");
  CHECK(wrong("fe80::1%7") == "");
  CHECK(wrong("10.0.0.1") == "");
  CHECK(wrong("fd00::1") == "");
  CHECK(wrong("fe80::1").find("as in fe80::1%eth0") != std::string::npos);
  CHECK(wrong("fe80::1%nowhere") == "there is no interface nowhere");

  asio_world world;
  accepted_links accepted;
  const auto open = world.transport().listen({"fe80::1%nowhere", 0}, accepted.acceptor());
  REQUIRE_FALSE(open);
  CHECK(open.error().what == "cannot listen on [fe80::1%nowhere]:0: there is no interface nowhere");
  const auto answer = dial(world, {"fe80::1", 29400});
  REQUIRE_FALSE(answer);
  CHECK(answer.error().what.find("as in fe80::1%eth0") != std::string::npos);
}

TEST_CASE("other machines are never told an address of the loopback interface") {
  CHECK(os::address_for_others(address("10.0.0.2"), "head") == "10.0.0.2");
  CHECK(os::address_for_others(address("10.0.0.2"), "10.0.0.1") == "10.0.0.2");
  CHECK(os::address_for_others(address("fe80::2"), "fe80::1%eth0") == "fe80::2");
  // /etc/hosts leads this machine's own name to itself.
  CHECK(os::address_for_others(address("127.0.1.1"), "head") == "head");
  CHECK(os::address_for_others(address("::1"), "head") == "head");
  // All are on this machine.
  CHECK(os::address_for_others(address("127.0.0.1"), "localhost") == "localhost");
  CHECK(os::address_for_others(address("127.0.0.1"), "127.0.0.1") == "127.0.0.1");
  CHECK(os::address_for_others(address("::1"), "::1") == "::1");
}
