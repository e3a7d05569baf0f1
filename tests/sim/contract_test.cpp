#include "runtime/base/invariant.hpp"
#include "tests/link/transport_contract.hpp"
#include "tests/process/process_contract.hpp"
#include "tests/sim/cluster.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <memory>

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

} // namespace troupe::testing
