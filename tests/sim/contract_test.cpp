#include "runtime/base/invariant.hpp"
#include "tests/link/bulk_contract.hpp"
#include "tests/link/transport_contract.hpp"
#include "tests/process/process_contract.hpp"
#include "tests/sim/bulk.hpp"
#include "tests/sim/cluster.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace troupe::testing {

namespace {

/// Lets simulated time pass until `holds`; a minute of it is patience enough.
bool pass_until(sim::world& w, const std::function<bool()>& holds) {
  const auto patience = w.events.now() + 60s;
  while (!holds()) {
    const auto next = w.events.next();
    if (!next || *next > patience)
      return false;
    w.events.step();
  }
  return true;
}

/// Both ends in one simulated process.
class sim_transport_world {
 public:
  /// What is still planned dies with the world; by then nothing may be planned in answer.
  ~sim_transport_world() { host_->end(sim::ending_kind::killed); }
  ports::transport& transport() { return *transport_; }
  ports::endpoint place() { return {"here", 0}; }
  template<class Condition>
  bool until(const Condition& condition) {
    return pass_until(world_, [&condition] { return condition(); });
  }

 private:
  sim::world world_{7};
  sim::network network_{world_};
  sim::host_ptr host_ = std::make_shared<sim::host>(world_, "here", 1, sim::host_options{});
  std::shared_ptr<ports::transport> transport_ = network_.transport_of(host_);
};

/// Two nodes of a job.
class sim_bulk_world {
 public:
  ~sim_bulk_world() {
    for (const auto& h : hosts_)
      h->end(sim::ending_kind::killed);
  }
  sim::sim_bulk_links& node(int which) { return *bulk_.at(static_cast<std::size_t>(which)); }
  sim::network& net() { return network_; }
  template<class Condition>
  bool until(const Condition& condition) {
    return pass_until(world_, [&condition] { return condition(); });
  }

  void crash(int which) {
    const auto& h = hosts_.at(static_cast<std::size_t>(which));
    h->end(sim::ending_kind::crashed);
    network_.host_ended(h, false);
    bulk_.at(static_cast<std::size_t>(which)).reset();
  }
  void succeed(int which) {
    const auto at = static_cast<std::size_t>(which);
    hosts_.at(at) =
        std::make_shared<sim::host>(world_, hosts_.at(at)->name(), 2, sim::host_options{});
    bulk_.at(at) = std::make_unique<sim::sim_bulk_links>(network_, hosts_.at(at), "job");
  }

 private:
  sim::host_ptr host_of(const char* name) {
    return std::make_shared<sim::host>(world_, name, 1, sim::host_options{});
  }
  std::unique_ptr<sim::sim_bulk_links> bulk_of(const sim::host_ptr& h) {
    return std::make_unique<sim::sim_bulk_links>(network_, h, "job");
  }

  sim::world world_{7};
  sim::network network_{world_};
  std::array<sim::host_ptr, 2> hosts_{host_of("node-0"), host_of("node-1")};
  std::array<std::unique_ptr<sim::sim_bulk_links>, 2> bulk_{bulk_of(hosts_[0]), bulk_of(hosts_[1])};
};

class sim_process_world final : public process_world {
 public:
  ports::process_host& host() override { return *processes_; }
  bool until(const std::function<bool()>& holds) override { return pass_until(world_, holds); }

  ports::process_spec exits_with(int status) override {
    return sim::trainers::scripted({status, false, false, false});
  }
  ports::process_spec runs() override { return sim::trainers::scripted({{}, false, false, false}); }
  ports::process_spec ignores_sigterm() override {
    return sim::trainers::scripted({{}, true, false, false});
  }
  bool deaf() override { return true; }
  ports::process_spec leaves_an_orphan() override {
    return sim::trainers::scripted({0, false, true, false});
  }
  ports::process_spec missing() override {
    return sim::trainers::scripted({{}, false, false, true});
  }
  std::size_t alive() override { return trainers_.alive(); }

 private:
  sim::world world_{7};
  sim::trainers trainers_{world_, {}};
  sim::host_ptr host_ = std::make_shared<sim::host>(world_, "here", 1, sim::host_options{});
  std::shared_ptr<ports::process_host> processes_ = trainers_.host_of(host_);
};

} // namespace

TEST_CASE("simulated processes keep the promises of processes") {
  check_process_contract([] { return std::make_unique<sim_process_world>(); });
}

TROUPE_TRANSPORT_CONTRACT(sim_transport_world);

TROUPE_BULK_CONTRACT(sim_bulk_world);

TEST_CASE("simulated bulk links end with either process, and its successor is where it was") {
  sim_bulk_world w;
  accepted_links met;
  w.node(1).serve(bulk_purpose::PROBE, met.acceptor());
  auto dialled = dial_bulk(w, 0, bulk_purpose::PROBE);
  REQUIRE(dialled);
  REQUIRE(w.until([&met] { return met.names().size() == 1; }));
  const auto where = w.node(1).where();
  owner near(std::move(*dialled));
  near.open();
  w.crash(1);
  REQUIRE(w.until([&near] { return near.closed(); }));
  dial_answer answer;
  w.node(0).dial(where, bulk_purpose::PROBE, answer.callback());
  REQUIRE(w.until([&answer] { return answer.count() == 1; }));
  CHECK(answer.take().error().code == errc::closed);

  w.succeed(1);
  CHECK(w.node(1).where() == where);
  w.node(1).serve(bulk_purpose::PROBE, met.acceptor());
  CHECK(dial_bulk(w, 0, bulk_purpose::PROBE));
  CHECK(w.until([&met] { return met.names().size() == 2; }));
}

TEST_CASE("simulated bulk links are silent while the way between their nodes is cut") {
  sim_bulk_world w;
  accepted_links met;
  w.node(1).serve(bulk_purpose::PROBE, met.acceptor());
  auto dialled = dial_bulk(w, 0, bulk_purpose::PROBE);
  REQUIRE(dialled);
  owner near(std::move(*dialled));
  near.open();
  w.net().hold("node-1", "node-0");
  REQUIRE(w.until([&near] { return near.closed(); }));
  CHECK(near.reasons().front().find("nothing") != std::string::npos);
  dial_answer answer;
  w.node(0).dial(w.node(1).where(), bulk_purpose::PROBE, answer.callback());
  REQUIRE(w.until([&answer] { return answer.count() == 1; }));
  CHECK(answer.take().error().code == errc::unavailable);
}

} // namespace troupe::testing
