#pragma once

#include "actors/node_supervisor/training/agent/agent_core.hpp"
#include "tests/actors/vocabulary.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors::testing {

/// An agent of two slots, seen by a test that reads its decisions.
struct agent_story {
  explicit agent_story(const node_name& node = "a") : agent_story(agent_options{node, 2, 30s}) {}
  explicit agent_story(const agent_options& options)
      : name(options.node), core(options, messages::author(options.node + "/agent")) {}

  // The master.
  std::string prepares(std::uint64_t g, const std::vector<node_name>& nodes = {"a", "b"}) {
    return told(core.prepare(now, prepare(g, nodes, name)));
  }
  std::string starts(std::uint64_t g) { return told(core.start(now, start(g))); }
  std::string stops(std::uint64_t g) { return told(core.stop(now, stop(g))); }
  std::string is_told_to_leave(std::uint64_t g, const node_name& node) {
    return told(core.leave_wanted(
        now, messages::author("master/recovery")
                 .write<messages::Leave>(generation{g}, [&node](messages::Leave::Builder b) {
                   b.setNode(node);
                   b.setReason("its restarts are used up");
                 })));
  }
  std::string stands_by() {
    return told(core.stand_by(
        now, messages::author("master/recovery").write<messages::StandBy>({}, [](auto b) {
          b.setReason("the world is full");
        })));
  }
  std::string concludes(bool success) { return told(core.conclude(now, conclude(success))); }

  // The workers, and their supervisors: the first bad end stops the siblings, and the generation
  // ends with its last worker.
  std::string comes_up(std::uint64_t g, local_rank local) {
    return told(core.worker_started(now, worker_started(g, local, 100 + static_cast<int>(local))));
  }
  std::string cannot_start(std::uint64_t g, local_rank local) {
    exit_report why;
    why.message = "no such program";
    why.unix_time_ms = 5;
    return told(end_of(g, local, exited(1), why, true));
  }
  std::string ends(std::uint64_t g, local_rank local, ports::exit_status how) {
    exit_report why;
    why.message = ports::to_string(how);
    return ends(g, local, how, why);
  }
  std::string ends(std::uint64_t g, local_rank local, ports::exit_status how,
                   const exit_report& why) {
    return told(end_of(g, local, how, why, false));
  }
  agent_core::effects end_of(std::uint64_t g, local_rank local, ports::exit_status how,
                             const exit_report& why, bool before_start) {
    const bool is_last = generation{g} == started && living.erase(local) > 0 && living.empty();
    const bool fails = before_start || !how.success();
    std::optional<duration> signalled;
    if (signalled_at)
      signalled = now - *signalled_at;
    if (fails && generation{g} == started && !signalled_at)
      signalled_at = now;
    auto out = core.worker_ended(now, worker_ended(g, local,
                                                   {how, why, signalled, before_start,
                                                    100 + static_cast<std::int32_t>(local)}));
    if (is_last) {
      const auto then = core.generation_ended(now, started, 0);
      out.insert(out.end(), then.begin(), then.end());
    }
    return out;
  }
  std::string is_drained(std::uint64_t g, const std::optional<error>& trouble = std::nullopt) {
    const auto effects = core.drained(now, generation{g}, trouble);
    said = notes(effects);
    return text(effects);
  }
  std::string is_swept(std::size_t killed = 0) { return told(core.swept(now, {killed, 0})); }
  std::string finds_port(std::uint16_t port) { return finds_port(core.current().value, port); }
  std::string finds_port(std::uint64_t g, std::uint16_t port) {
    return told(core.store_placed(now, generation{g}, port));
  }

  // Workers are to end by themselves.
  std::string is_asked_to_end(std::uint64_t g) { return told(core.end_wanted(now, end_wanted(g))); }
  std::string finds_handler(local_rank local, bool there) {
    return told(core.handler_looked_for(now, started, local, there));
  }
  std::string wants_snapshot() { return told(core.snapshot_wanted(now)); }
  std::string passes(duration d) {
    now += d;
    return told(core.tick(now));
  }

  // The user.
  std::string is_interrupted(int signal = SIGINT, bool ends_job = false) {
    return told(core.interrupted(now, signal, ends_job));
  }
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

  /// In words; with saves at once nothing is heard of draining.
  std::string told(agent_core::effects effects) {
    for (const auto& e : effects)
      see(e);
    const auto drains = [](const agent_core::effect& e) {
      return std::holds_alternative<agent_core::drain>(e);
    };
    const auto asked = std::find_if(effects.begin(), effects.end(), drains);
    if (!saves_at_once || asked == effects.end())
      return text(effects);
    const auto answer = core.drained(now, std::get<agent_core::drain>(*asked).which, std::nullopt);
    effects.erase(asked);
    effects.insert(effects.end(), answer.begin(), answer.end());
    return text(effects);
  }

  void see(const agent_core::effect& e) {
    if (const auto* start = std::get_if<agent_core::start_generation>(&e)) {
      started = start->which;
      signalled_at.reset();
      for (const auto& slot : start->slots)
        living.insert(slot.place.local);
    }
    if (std::holds_alternative<agent_core::stop_generation>(e) && !signalled_at)
      signalled_at = now;
    if (const auto* sweep = std::get_if<agent_core::sweep>(&e))
      last_sweep = sweep->order;
  }

  node_name name;
  agent_core core;
  instant now = dawn;
  /// Nothing that the processes wanted saved is waited for.
  bool saves_at_once = true;
  std::string said;
  generation started;
  std::set<local_rank> living;         ///< of that generation
  std::optional<instant> signalled_at; ///< its workers
  ports::sweep_order last_sweep;
};

} // namespace troupe::actors::testing
