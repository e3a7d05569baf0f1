#pragma once

#include "actors/topology.hpp"
#include "tests/actors/stage.hpp"
#include "tests/fakes/checkpoints.hpp"
#include "tests/fakes/keeping.hpp"
#include "tests/fakes/processes.hpp"
#include "tests/fakes/replication.hpp"
#include "tests/fakes/stores.hpp"
#include "tests/fakes/worker_links.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::actors::testing {

/// A whole node supervisor of two slots on fakes; a test plays its master. Its processes are called
/// "g1/0", "g1/1", …
struct node_stage : stage {
  explicit node_stage(const node_name& node = "a", std::uint64_t seed = 1) : stage(seed) {
    options.uplink.job = "job";
    options.uplink.node = options.agent.node = node;
    options.uplink.address = node + ".lan";
    options.uplink.slots = options.agent.slots = 2;
    options.uplink.master = "master:29400";
    options.agent.stop_within = 30s;
    options.master = {"master", 29400};
    options.seed = seed;
    options.program.spec = [this](const assignment& a) -> result<ports::process_spec> {
      if (no_spec)
        return tl::make_unexpected(*no_spec);
      ports::process_spec spec;
      spec.argv = {"g" + std::to_string(a.which.value) + "/" + std::to_string(a.local)};
      return spec;
    };
    options.program.explain = [](const assignment&, const ports::exit_status& s) -> exit_report {
      return {ports::to_string(s), {}, {}, 0, {}};
    };
  }

  void begin() {
    node_events events;
    events.on_over = [this](const node_outcome& o) { outcomes.push_back(o); };
    node_world of{transport, processes, stores, keeping, checkpoints, copies};
    of.workers = channel;
    play(node_tree(of, options, at, events));
  }

  /// The master accepts the dial that waits; what the node said in its hello.
  std::string accept() {
    const auto m = transport->dialling();
    if (!m)
      return "no node dials";
    link = transport->answer_dial();
    incarnations.push_back(incarnation{m->read()->getIncarnation()});
    followed = m->envelope().follows;
    settle();
    return text(m->any());
  }

  void says(const messages::any_msg& m) {
    link->arrives(m);
    settle();
  }
  std::string hears() { return heard(*link); }

  void welcomes(term master = {}) {
    says(messages::author("master", master).write<messages::Welcome>({}, [](auto) {}).any());
  }

  /// Linked, prepared, started.
  void runs(std::uint64_t g = 1) {
    accept();
    welcomes();
    says(prepare(g, {"a", "b"}).any());
    says(start(g).any());
    hears();
    processes->take_deeds();
  }

  void ends(const std::string& process, ports::exit_status how) {
    processes->end(process, how);
    settle();
  }

  node_options options;
  node_addresses at;
  std::optional<error> no_spec;
  std::shared_ptr<troupe::testing::fake_transport> transport =
      std::make_shared<troupe::testing::fake_transport>();
  std::shared_ptr<troupe::testing::fake_processes> processes =
      std::make_shared<troupe::testing::fake_processes>();
  std::shared_ptr<troupe::testing::fake_stores> stores =
      std::make_shared<troupe::testing::fake_stores>();
  std::shared_ptr<troupe::testing::fake_keeping> keeping =
      std::make_shared<troupe::testing::fake_keeping>();
  std::shared_ptr<troupe::testing::fake_checkpoints> checkpoints =
      std::make_shared<troupe::testing::fake_checkpoints>();
  std::shared_ptr<troupe::testing::fake_replication> copies =
      std::make_shared<troupe::testing::fake_replication>();
  std::shared_ptr<troupe::testing::fake_worker_links> channel =
      std::make_shared<troupe::testing::fake_worker_links>();
  troupe::testing::fake_link_ptr link;
  std::vector<incarnation> incarnations;
  term followed; ///< as the last hello says
  std::vector<node_outcome> outcomes;
};

} // namespace troupe::actors::testing
