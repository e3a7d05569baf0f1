#pragma once

#include "actors/node_supervisor/worker_group/leader/leader_core.hpp"
#include "tests/actors/vocabulary.hpp"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors::testing {

/// A leader of two slots through the eyes of whoever reads its decisions.
struct leader_story {
  explicit leader_story(const node_name& node = "a") : leader_story(leader_options{node, 2, 30s}) {}
  explicit leader_story(const leader_options& options)
      : core(options, messages::author(options.node + "/leader")) {}

  // The master.
  std::string prepares(std::uint64_t g, const std::vector<node_name>& nodes = {"a", "b"}) {
    return told(core.prepare(now, prepare(g, nodes)));
  }
  std::string starts(std::uint64_t g) { return told(core.start(now, start(g))); }
  std::string stops(std::uint64_t g) { return told(core.stop(now, stop(g))); }
  std::string concludes(bool success) { return told(core.conclude(now, conclude(success))); }

  // The processes.
  std::string comes_up(std::uint64_t g, local_rank local) {
    return told(core.worker_started(now, generation{g}, local, 100 + static_cast<int>(local)));
  }
  std::string cannot_start(std::uint64_t g, local_rank local) {
    return told(core.worker_not_started(now, generation{g}, local, "no such program", 0));
  }
  std::string ends(std::uint64_t g, local_rank local, ports::exit_status how) {
    return told(
        core.worker_ended(now, generation{g}, local, how, {ports::to_string(how), {}, {}, 0, {}}));
  }
  std::string is_drained(std::uint64_t g, const std::optional<error>& trouble = std::nullopt) {
    const auto effects = core.drained(now, generation{g}, trouble);
    said = notes(effects);
    return text(effects);
  }
  std::string is_swept(std::size_t killed = 0) { return told(core.swept(now, killed)); }
  std::string finds_port(std::uint16_t port) { return told(core.store_placed(now, port)); }

  // The user.
  std::string is_interrupted(int signal = SIGINT) { return told(core.interrupted(now, signal)); }
  std::string hears_signal(int signal) { return told(core.passed_on(now, signal)); }
  std::string gives_up() { return told(core.abandon(now, "no master")); }

  std::string state() { return text(core.state(now).any()); }

  // Longer passages.
  void runs(std::uint64_t g) {
    prepares(g);
    finds_port(4000);
    starts(g);
    comes_up(g, 0);
    comes_up(g, 1);
  }

  /// In words; with saves at once nobody hears of draining.
  std::string told(leader_core::effects effects) {
    const auto drains = [](const leader_core::effect& e) {
      return std::holds_alternative<leader_core::drain>(e);
    };
    const auto asked = std::find_if(effects.begin(), effects.end(), drains);
    if (!saves_at_once || asked == effects.end())
      return text(effects);
    const auto answer = core.drained(now, std::get<leader_core::drain>(*asked).which, std::nullopt);
    effects.erase(asked);
    effects.insert(effects.end(), answer.begin(), answer.end());
    return text(effects);
  }

  leader_core core;
  instant now = dawn;
  /// Nothing that the processes wanted saved is waited for.
  bool saves_at_once = true;
  std::string said;
};

} // namespace troupe::actors::testing
