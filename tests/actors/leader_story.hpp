#pragma once

#include "actors/node_supervisor/worker_group/leader/leader_core.hpp"
#include "tests/actors/vocabulary.hpp"

#include <string>
#include <vector>

namespace troupe::actors::testing {

/// A leader of two slots through the eyes of whoever reads its decisions.
struct leader_story {
  explicit leader_story(const node_name& node = "a")
      : core(leader_options{node, 2, 30s}, messages::author(node + "/leader")) {}

  // The master.
  std::string prepares(std::uint64_t g, const std::vector<node_name>& nodes = {"a", "b"}) {
    return text(core.prepare(now, prepare(g, nodes)));
  }
  std::string starts(std::uint64_t g) { return text(core.start(now, start(g))); }
  std::string stops(std::uint64_t g) { return text(core.stop(now, stop(g))); }
  std::string concludes(bool success) { return text(core.conclude(now, conclude(success))); }

  // The processes.
  std::string comes_up(std::uint64_t g, local_rank local) {
    return text(core.worker_started(now, generation{g}, local, 100 + static_cast<int>(local)));
  }
  std::string cannot_start(std::uint64_t g, local_rank local) {
    return text(core.worker_not_started(now, generation{g}, local, "no such program", 0));
  }
  std::string ends(std::uint64_t g, local_rank local, ports::exit_status how) {
    return text(
        core.worker_ended(now, generation{g}, local, how, {ports::to_string(how), {}, {}, 0, {}}));
  }
  std::string is_swept(std::size_t killed = 0) { return text(core.swept(now, killed)); }
  std::string finds_port(std::uint16_t port) { return text(core.store_placed(now, port)); }

  // The user.
  std::string is_interrupted(int signal = SIGINT) { return text(core.interrupted(now, signal)); }
  std::string hears_signal(int signal) { return text(core.passed_on(now, signal)); }
  std::string gives_up() { return text(core.abandon(now, "no master")); }

  std::string state() { return text(core.state(now).any()); }

  // Longer passages.
  void runs(std::uint64_t g) {
    prepares(g);
    finds_port(4000);
    starts(g);
    comes_up(g, 0);
    comes_up(g, 1);
  }

  leader_core core;
  instant now = dawn;
};

} // namespace troupe::actors::testing
