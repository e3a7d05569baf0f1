#include "tests/fakes/bulk_links.hpp"

#include "tests/link/bulk_contract.hpp"

#include <doctest/doctest.h>

#include <string>

namespace troupe::testing {

class fake_bulk_world {
 public:
  ports::bulk_links& node(int which) { return *network_.node("node-" + std::to_string(which)); }
  fake_bulk_network& network() { return network_; }
  template<class Condition>
  bool until(const Condition& condition) {
    while (!condition())
      if (!network_.step())
        return false;
    return true;
  }

 private:
  fake_bulk_network network_;
};

} // namespace troupe::testing

TROUPE_BULK_CONTRACT(fake_bulk_world);

TEST_CASE("nothing happens on fake bulk links until the test lets it") {
  fake_bulk_world w;
  accepted_links met;
  w.node(1).serve(bulk_purpose::PROBE, met.acceptor());
  dial_answer answer;
  w.node(0).dial(w.node(1).where(), bulk_purpose::PROBE, answer.callback());
  CHECK(met.names().empty());
  CHECK(w.network().waiting() == 1);
  CHECK(w.network().step());
  CHECK(met.names().size() == 1);
  owner near(*answer.take()), far(met.link(0));
  far.open();
  REQUIRE(near.link().send(numbered(1)));
  w.network().settle();
  CHECK(far.numbers() == up_to(1));
  CHECK(w.network().delivered() == 1);
}

TEST_CASE("a node that is cut off loses its links, and is dialled in vain until it is mended") {
  fake_bulk_world w;
  accepted_links met;
  w.node(1).serve(bulk_purpose::PROBE, met.acceptor());
  auto link = dial_bulk(w, 0, bulk_purpose::PROBE);
  REQUIRE(link);
  owner near(std::move(*link)), far(met.link(0));
  near.open();
  far.open();
  w.network().settle();
  w.network().cut("node-1");
  CHECK(near.closed());
  CHECK(far.closed());
  CHECK(dial_bulk(w, 0, bulk_purpose::PROBE).error().code == errc::unavailable);
  w.network().mend("node-1");
  CHECK(dial_bulk(w, 0, bulk_purpose::PROBE));
}

TEST_CASE("a fake node keeps the rate that the test gives it") {
  fake_bulk_world w;
  w.network().set_rate("node-0", 1'000);
  const instant now{1h};
  w.node(0).sent(now, limits::bulk_burst + 1'000);
  CHECK(w.node(0).may_send(now, 1'000) == now + 2s);
  CHECK(w.node(1).may_send(now, 1'000) == now);
}
