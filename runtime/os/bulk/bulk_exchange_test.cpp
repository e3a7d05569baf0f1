#include "runtime/os/bulk/bulk_exchange.hpp"

#include "runtime/base/invariant.hpp"
#include "tests/link/asio_world.hpp"
#include "tests/link/bulk_contract.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

namespace troupe::testing {

/// Exchanges of nodes, on real sockets on loopback.
class exchanges {
 public:
  explicit exchanges(os::bulk_exchange_options second = {}) {
    nodes_[0] = made({"job", "node-0"});
    second.job = "job";
    second.node = "node-1";
    nodes_[1] = made(second);
  }

  std::unique_ptr<os::bulk_exchange> made(const os::bulk_exchange_options& options) {
    auto opened = os::bulk_exchange::open(transport(), world_.place(), options);
    invariant(opened.has_value(), opened ? "" : opened.error().what);
    return std::move(*opened);
  }
  std::shared_ptr<ports::transport> transport() {
    return {std::shared_ptr<void>{}, &world_.transport()};
  }
  os::bulk_exchange& node(int which) { return *nodes_.at(static_cast<std::size_t>(which)); }
  void end(int which) { nodes_.at(static_cast<std::size_t>(which)).reset(); }
  template<class Condition>
  bool until(const Condition& condition) const {
    return eventually(condition);
  }

 private:
  asio_world world_;
  std::array<std::unique_ptr<os::bulk_exchange>, 2> nodes_;
};

namespace {

/// What a stranger hears that dials node 1 with this hello.
std::string heard_by(exchanges& w, messages::Hello::Role role, const char* job) {
  const auto hello = messages::build<messages::Hello>({"stranger"}, [&](auto b) {
    b.setJob(job);
    b.setNode("stranger");
    b.setRole(role);
    b.setPurpose(ports::bulk_purpose::PROBE);
  });
  dial_answer answer;
  w.transport()->dial(w.node(1).where(), hello, answer.callback());
  REQUIRE(w.until([&answer] { return answer.count() == 1; }));
  auto link = answer.take();
  REQUIRE(link);
  const refusal heard(std::move(*link));
  REQUIRE(w.until([&heard] { return heard.closed(); }));
  return heard.why();
}

} // namespace

} // namespace troupe::testing

TROUPE_BULK_CONTRACT(exchanges);

TEST_CASE("only peers of the job are handed over; the others hear why they are not") {
  exchanges w;
  accepted_links met;
  w.node(1).serve(bulk_purpose::PROBE, met.acceptor());
  using role = messages::Hello::Role;
  CHECK(heard_by(w, role::NODE, "job") ==
        "here are bulk links between nodes: only peers may dial, all others dial the master");
  CHECK(heard_by(w, role::PEER, "another") ==
        "here are bulk links of job \"job\", not of job \"another\"");
  CHECK(met.names().empty());
}

TEST_CASE("one peer too many is turned away, until another's owner has let go of its link") {
  os::bulk_exchange_options few;
  few.peers_max = 2;
  exchanges w(few);
  accepted_links met;
  w.node(1).serve(bulk_purpose::PROBE, met.acceptor());
  w.node(1).serve(bulk_purpose::COPIES, met.acceptor());
  const auto first = dial_bulk(w, 0, bulk_purpose::PROBE);
  const auto second = dial_bulk(w, 0, bulk_purpose::COPIES);
  REQUIRE(w.until([&met] { return met.names().size() == 2; }));
  CHECK(refusal_of(w, 0, bulk_purpose::PROBE) == "2 bulk links of other nodes are here already");
  met.forget();
  CHECK(dial_bulk(w, 0, bulk_purpose::PROBE));
  CHECK(w.until([&met] { return met.names().size() == 3; }));
}

TEST_CASE("an acceptor may say at once that it takes no more, and need not keep what it gets") {
  exchanges w;
  w.node(1).serve(bulk_purpose::PROBE, [&w](const ports::peer& p) {
    w.node(1).serve(bulk_purpose::PROBE, {});
    p.link->close("one is enough");
  });
  const auto first = dial_bulk(w, 0, bulk_purpose::PROBE);
  REQUIRE(first);
  owner near(*first);
  near.open();
  REQUIRE(w.until([&near] { return near.closed(); }));
  CHECK(refusal_of(w, 0, bulk_purpose::PROBE) ==
        "this node takes no part in checks of the network");
}

TEST_CASE("after its end no acceptor hears of more, and what was handed over stays") {
  exchanges w;
  accepted_links met;
  w.node(1).serve(bulk_purpose::PROBE, met.acceptor());
  auto dialled = dial_bulk(w, 0, bulk_purpose::PROBE);
  REQUIRE(dialled);
  REQUIRE(w.until([&met] { return met.names().size() == 1; }));
  const auto where = w.node(1).where();
  w.end(1);
  dial_answer answer;
  w.node(0).dial(where, bulk_purpose::PROBE, answer.callback());
  REQUIRE(w.until([&answer] { return answer.count() == 1; }));
  CHECK_FALSE(answer.take());
  CHECK(met.names().size() == 1);
  owner near(std::move(*dialled)), far(met.link(0));
  near.open();
  far.open();
  REQUIRE(far.link().send(numbered(1)));
  CHECK(w.until([&near] { return near.numbers().size() == 1; }));
  // The port is free for the node's next supervisor.
  CHECK(os::bulk_exchange::open(w.transport(), where, {"job", "node-1"}));
}

TEST_CASE("a place that is taken is refused with a line") {
  exchanges w;
  const auto second = os::bulk_exchange::open(w.transport(), w.node(0).where(), {"job", "node-2"});
  REQUIRE_FALSE(second);
  CHECK(second.error().code == errc::refused);
  CHECK(second.error().what.find(std::to_string(w.node(0).where().port)) != std::string::npos);
}

TEST_CASE("all that a node sends keeps one rate, whatever it is for and whichever thread sends") {
  os::bulk_exchange_options slow;
  slow.bytes_per_second = 1'000;
  exchanges w(slow);
  auto& node = w.node(1);
  const instant start{1h};
  // A rest: all of the burst may go at once. Then each waits for what the other has sent.
  CHECK(node.may_send(start, limits::bulk_burst) == start);
  node.sent(start, limits::bulk_burst);
  CHECK(node.may_send(start, 500) == start + 500ms); // of a snapshot
  node.sent(start + 500ms, 500);
  CHECK(node.may_send(start + 500ms, 1'000) == start + 1'500ms); // of a probe
  node.sent(start + 1'500ms, 1'000);
  CHECK(node.may_send(start + 1'500ms, 1) == start + 1'501ms);
  // Without a rate there is no bound.
  w.node(0).sent(start, 1u << 30);
  CHECK(w.node(0).may_send(start, 1u << 30) == start);
}

TEST_CASE("several threads share the rate and lose nothing of what was sent") {
  os::bulk_exchange_options slow;
  slow.bytes_per_second = 1'000'000;
  exchanges w(slow);
  auto& node = w.node(1);
  const instant start{1h};
  node.sent(start, limits::bulk_burst);
  std::vector<std::thread> senders;
  for (int i = 0; i < 4; ++i)
    senders.emplace_back([&node, start] {
      for (int n = 0; n < 1'000; ++n)
        node.sent(start, 1'000);
    });
  for (auto& each : senders)
    each.join();
  CHECK(node.may_send(start, 1'000) == start + 4s + 1ms);
}
