#include "launch/wiring/standing_address.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace troupe;
using namespace troupe::launch;

namespace {

/// Opens any place; a test calls `accept` as a peer that has proven itself.
struct one_place final : ports::transport {
  struct open final : ports::listener {
    explicit open(one_place& of) : place(of) { ++place.opened; }
    ~open() override { place.closed = true; }
    ports::endpoint where() const override { return {"127.0.0.1", 4711}; }
    one_place& place;
  };
  result<std::unique_ptr<ports::listener>> listen(const ports::endpoint&, acceptor a) override {
    if (refuses)
      return failure(errc::refused, "it is in use");
    accept = std::move(a);
    return std::make_unique<open>(*this);
  }
  void dial(const ports::endpoint& where, messages::msg<messages::Hello>, dialled) override {
    dialled_to = ports::to_string(where);
  }

  acceptor accept;
  int opened = 0;
  bool closed = false, refuses = false;
  std::string dialled_to;
};

} // namespace

TEST_SUITE("standing_address") {
  TEST_CASE("stays open between its owners, and turns peers away while there is none") {
    const auto below = std::make_shared<one_place>();
    standing_address stands(below);
    std::string heard;
    const auto owner = [&heard](const char* name) {
      return [&heard, name](const ports::peer&) { heard += name; };
    };
    auto first = stands.listen({"127.0.0.1", 0}, owner("a"));
    REQUIRE(first);
    CHECK((*first)->where().port == 4711);
    below->accept({});
    first->reset();
    CHECK_FALSE(below->closed);
    below->accept({});
    auto second = stands.listen({"127.0.0.1", 4711}, owner("b"));
    REQUIRE(second);
    below->accept({});
    CHECK(heard == "ab");
    CHECK(below->opened == 1);
    // One that goes late takes nothing from its successor.
    auto third = stands.listen({"127.0.0.1", 4711}, owner("c"));
    second->reset();
    below->accept({});
    CHECK(heard == "abc");
    stands.dial({"10.0.0.7", 9}, {}, {});
    CHECK(below->dialled_to == "10.0.0.7:9");
  }

  TEST_CASE("is closed with it, and no peer comes after that") {
    const auto below = std::make_shared<one_place>();
    bool heard = false;
    {
      standing_address stands(below);
      const auto place = stands.listen({}, [&heard](const ports::peer&) { heard = true; });
      REQUIRE(place);
    }
    CHECK(below->closed);
    below->accept({});
    CHECK_FALSE(heard);
  }

  TEST_CASE("says why the place cannot be had, and may be asked again") {
    const auto below = std::make_shared<one_place>();
    standing_address stands(below);
    below->refuses = true;
    CHECK(stands.listen({}, {}).error().what == "it is in use");
    below->refuses = false;
    CHECK(stands.listen({}, {}));
  }
}
