#pragma once

#include "runtime/ports/bulk_links.hpp"
#include "tests/link/transport_contract.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

/// What every ports::bulk_links promises, whatever carries the bytes. A world is
/// default-constructible, is two nodes of the job "job", "node-0" and "node-1", and has
///
///     ports::bulk_links& node(i);   of node 0 or 1
///     bool until(condition);        as for the contract of transports
///
/// and TROUPE_BULK_CONTRACT(world) runs all of this on it.
namespace troupe::testing {

/// The dialler's end of a link that is refused: what it hears.
class refusal {
 public:
  explicit refusal(ports::connection_ptr link) : link_(std::move(link)) {
    link_->open({[ears = ears_](const messages::any_msg& m) {
                   const std::lock_guard lock(ears->mutex);
                   if (m.is<messages::Refused>())
                     ears->why = m.as<messages::Refused>().read()->getReason().cStr();
                 },
                 [ears = ears_](const ports::link_ending&) {
                   const std::lock_guard lock(ears->mutex);
                   ears->closed = true;
                 }});
  }

  std::string why() const {
    const std::lock_guard lock(ears_->mutex);
    return ears_->why;
  }
  bool closed() const {
    const std::lock_guard lock(ears_->mutex);
    return ears_->closed;
  }

 private:
  struct heard {
    std::mutex mutex;
    std::string why;
    bool closed = false;
  };
  ports::connection_ptr link_;
  std::shared_ptr<heard> ears_ = std::make_shared<heard>();
};

/// Node `from` dials the other one; the answer.
template<class World>
result<ports::connection_ptr> dial_bulk(World& world, int from, ports::bulk_purpose purpose) {
  dial_answer answer;
  world.node(from).dial(world.node(1 - from).where(), purpose, answer.callback());
  REQUIRE(world.until([&answer] { return answer.count() == 1; }));
  return answer.take();
}

/// Why the other node refuses a link for this; empty if no word of it comes before the end.
template<class World>
std::string refusal_of(World& world, int from, ports::bulk_purpose purpose) {
  auto link = dial_bulk(world, from, purpose);
  REQUIRE_MESSAGE(link.has_value(), link.error().what);
  const refusal heard(std::move(*link));
  REQUIRE(world.until([&heard] { return heard.closed(); }));
  return heard.why();
}

} // namespace troupe::testing

// doctest's templates want the global namespace.
using namespace troupe;
using namespace troupe::testing;
using ports::bulk_purpose;

TEST_CASE_TEMPLATE_DEFINE("contract: a peer comes to the acceptor of what it dials for, by name",
                          World, bulk_contract_purpose) {
  World w;
  accepted_links of_copies, of_probes;
  w.node(1).serve(bulk_purpose::COPIES, of_copies.acceptor());
  w.node(1).serve(bulk_purpose::PROBE, of_probes.acceptor());
  auto dialled = dial_bulk(w, 0, bulk_purpose::PROBE);
  REQUIRE_MESSAGE(dialled.has_value(), dialled.error().what);
  REQUIRE(w.until([&of_probes] { return of_probes.names().size() == 1; }));
  CHECK(of_probes.names().front() == "node-0");
  CHECK(of_copies.names().empty());
  owner near(std::move(*dialled)), far(of_probes.link(0));
  of_probes.forget();
  near.open();
  far.open();
  for (std::uint64_t i = 1; i <= 300; ++i) {
    REQUIRE(near.link().send(numbered(i)));
    REQUIRE(far.link().send(numbered(i)));
  }
  CHECK(w.until([&] { return near.numbers().size() == 300 && far.numbers().size() == 300; }));
  CHECK(near.numbers() == up_to(300));
  CHECK(far.numbers() == up_to(300));
  far.let_go();
  CHECK(w.until([&near] { return near.closed(); }));
}

TEST_CASE_TEMPLATE_DEFINE("contract: each node dials the other, at the place that it says", World,
                          bulk_contract_both_ways) {
  World w;
  for (const int from : {0, 1}) {
    CHECK(w.node(from).where().port != 0);
    accepted_links met;
    w.node(1 - from).serve(bulk_purpose::COPIES, met.acceptor());
    REQUIRE(dial_bulk(w, from, bulk_purpose::COPIES));
    REQUIRE(w.until([&met] { return met.names().size() == 1; }));
    CHECK(met.names().front() == "node-" + std::to_string(from));
    w.node(1 - from).serve(bulk_purpose::COPIES, {});
  }
}

TEST_CASE_TEMPLATE_DEFINE("contract: without an acceptor a peer hears why, and the link ends",
                          World, bulk_contract_refusal) {
  World w;
  accepted_links met;
  w.node(1).serve(bulk_purpose::PROBE, met.acceptor());
  CHECK(refusal_of(w, 0, bulk_purpose::COPIES) ==
        "this node takes no copies of other nodes' images");
  w.node(1).serve(bulk_purpose::PROBE, {});
  CHECK(refusal_of(w, 0, bulk_purpose::PROBE) ==
        "this node takes no part in checks of the network");
  CHECK(met.names().empty());
}

TEST_CASE_TEMPLATE_DEFINE(
    "contract: an acceptor that was replaced hears of no more, and keeps what it has", World,
    bulk_contract_replaced) {
  World w;
  accepted_links first, second;
  w.node(1).serve(bulk_purpose::PROBE, first.acceptor());
  auto one = dial_bulk(w, 0, bulk_purpose::PROBE);
  REQUIRE(one);
  REQUIRE(w.until([&first] { return first.names().size() == 1; }));
  w.node(1).serve(bulk_purpose::PROBE, second.acceptor());
  REQUIRE(dial_bulk(w, 0, bulk_purpose::PROBE));
  REQUIRE(w.until([&second] { return second.names().size() == 1; }));
  CHECK(first.names().size() == 1);
  owner near(std::move(*one)), far(first.link(0));
  near.open();
  far.open();
  REQUIRE(near.link().send(numbered(1)));
  CHECK(w.until([&far] { return far.numbers().size() == 1; }));
}

TEST_CASE_TEMPLATE_DEFINE("contract: no bytes may be sent before now", World, bulk_contract_pace) {
  World w;
  const instant now{1h};
  CHECK(w.node(0).may_send(now, 1) == now);
  w.node(0).sent(now, 1);
  CHECK(w.node(0).may_send(now, 1) >= now);
}

/// Runs the whole contract on one world, or on several; in the global namespace.
#define TROUPE_BULK_CONTRACT(...)                                                                  \
  TEST_CASE_TEMPLATE_INVOKE(bulk_contract_purpose, __VA_ARGS__);                                   \
  TEST_CASE_TEMPLATE_INVOKE(bulk_contract_both_ways, __VA_ARGS__);                                 \
  TEST_CASE_TEMPLATE_INVOKE(bulk_contract_refusal, __VA_ARGS__);                                   \
  TEST_CASE_TEMPLATE_INVOKE(bulk_contract_replaced, __VA_ARGS__);                                  \
  TEST_CASE_TEMPLATE_INVOKE(bulk_contract_pace, __VA_ARGS__)
