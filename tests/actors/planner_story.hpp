#pragma once

#include "actors/master/recovery/recovery_core.hpp"
#include "tests/actors/vocabulary.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors::testing {

/// A master's planner through the eyes of whatever reads its plans. The tree below it does as it
/// is told, when the story says so.
struct planner_story {
  planner_story(std::uint32_t nodes_min, std::uint32_t nodes_max,
                const std::vector<messages::any_msg>& past = {})
      : planner_story(sizes(nodes_min, nodes_max), restarts(3), past) {}
  planner_story(const rendezvous_options& s, const recovery_options& o,
                const std::vector<messages::any_msg>& past = {}, term term = {})
      : core(s, o, messages::author("master/recovery", term), dawn) {
    tell(core.recall(dawn, past));
    recalled = last;
  }

  static rendezvous_options sizes(std::uint32_t nodes_min, std::uint32_t nodes_max) {
    rendezvous_options o;
    o.nodes_min = nodes_min;
    o.nodes_max = nodes_max;
    o.last_call = 30s;
    o.join_timeout = 600s;
    o.stop_within = 30s;
    o.prepare_slack = 30s;
    o.recall_within = 15s;
    return o;
  }
  static recovery_options restarts(std::uint32_t max) {
    recovery_options o;
    o.max_restarts = max;
    o.start_pause.first = {}; // the stories that are about it say so
    return o;
  }
  /// These nodes run in generation 1.
  static planner_story that_runs(const std::vector<node_name>& nodes, rendezvous_options s,
                                 const recovery_options& o = restarts(3)) {
    s.last_call.reset();
    planner_story story(s, o);
    for (const auto& node : nodes)
      story.comes(node);
    if (story.core.current_phase() == recovery_core::phase::gathering)
      story.passes(s.settle);
    story.is_sealed();
    REQUIRE(story.core.current_phase() == recovery_core::phase::running);
    return story;
  }
  static planner_story two_that_run(std::uint32_t max_restarts) {
    return that_runs({"a", "b"}, sizes(2, 2), restarts(max_restarts));
  }

  // Membership.
  std::string comes(const node_name& node, std::optional<std::uint32_t> wanted_rank = {},
                    const doing& d = {}) {
    return tell(core.node_present(now, present(node, d, [wanted_rank](auto b) {
                                    if (wanted_rank)
                                      b.setWantedRank(static_cast<std::int32_t>(*wanted_rank));
                                  })));
  }
  std::string comes_as(const node_name& node, incarnation which) {
    return tell(core.node_present(
        now, present(node, {}, [which](auto b) { b.setIncarnation(which.value); })));
  }
  std::string comes_with_restarts(const node_name& node, std::uint32_t max) {
    return tell(
        core.node_present(now, present(node, {}, [max](auto b) { b.setMaxRestarts(max); })));
  }
  std::string goes_away(const node_name& node) { return tell(core.node_away(now, away(node))); }
  std::string is_lost(const node_name& node) { return tell(core.node_lost(now, lost(node))); }

  // The generation that is up.
  std::string is_sealed() { return tell(core.sealed(now, sealed(core.current().value, {"a"}))); }
  std::string starts(const node_name& node) {
    return tell(core.running(now, running(node, core.current().value)));
  }
  std::string fails(const node_name& node, const std::vector<int>& codes = {1}) {
    return tell(core.failed(now, failed(node, core.current().value, codes)));
  }
  std::string stops(const node_name& node, const std::vector<int>& codes = {}) {
    return tell(core.stopped(now, stopped(node, core.current().value, codes)));
  }
  std::string finishes(const node_name& node, bool asked = false) {
    return tell(core.finished(now, finished(node, core.current().value, asked)));
  }
  std::string answers(const node_name& node, bool begun) {
    return tell(core.end_answer(now, end_answer(node, core.current().value, begun)));
  }
  std::string ends(const std::optional<std::string>& why = std::nullopt) {
    return tell(core.generation_ended(now, core.current(), why));
  }

  /// A failure, and all that the tree does about it: what is decided then.
  std::string fails_and_ends(const node_name& node, const std::vector<int>& codes = {1}) {
    fails(node, codes);
    return ends("it failed");
  }
  std::string is_lost_and_ends(const node_name& node) {
    is_lost(node);
    return ends("it is lost");
  }

  /// The newest check says so.
  std::string is_checked(const std::vector<node_name>& good,
                         const std::vector<node_name>& leave = {},
                         const std::vector<node_name>& undecided = {}) {
    return tell(core.nodes_checked(now, checks, checked(good, leave, undecided)));
  }
  std::string check_fails() { return tell(core.check_failed(now, checks, "it fell")); }

  std::string passes(duration d) {
    now += d;
    return tell(core.tick(now));
  }

  recovery_core core;
  instant now = dawn;
  std::string recalled;
  /// What it decided, and said, last.
  std::string last, said;
  /// What the members heard last of whether one of them is dispensable; in no other text.
  std::string dispensable;
  std::uint64_t checks = 0; ///< the number of the newest

  static messages::msg<messages::NodesChecked> checked(const std::vector<node_name>& good,
                                                       const std::vector<node_name>& leave,
                                                       const std::vector<node_name>& undecided) {
    const auto write = [](auto names, const std::vector<node_name>& from) {
      for (unsigned i = 0; i < from.size(); ++i)
        names.set(i, from[i]);
    };
    return messages::local<messages::NodesChecked>(
        "master/network_check", [&](messages::NodesChecked::Builder b) {
          write(b.initGood(static_cast<unsigned>(good.size())), good);
          write(b.initUndecided(static_cast<unsigned>(undecided.size())), undecided);
          auto all = b.initLeave(static_cast<unsigned>(leave.size()));
          for (unsigned i = 0; i < leave.size(); ++i) {
            all[i].setReason("node " + leave[i] + " is faulty");
            all[i].initNodes(1).set(0, leave[i]);
          }
        });
  }

 private:
  std::string tell(const recovery_core::effects& effects) {
    recovery_core::effects worth_saying;
    for (const auto& e : effects)
      if (const auto* n = std::get_if<recovery_core::note>(&e);
          !n || n->event.name != std::string("nodes_by_rank"))
        worth_saying.push_back(e);
    said = notes(worth_saying);
    recovery_core::effects others;
    for (const auto& e : effects) {
      if (const auto* check = std::get_if<recovery_core::check_nodes>(&e))
        checks = check->number;
      const auto* told = std::get_if<recovery_core::direct>(&e);
      if (told && told->message.is<messages::Dispensable>())
        dispensable = text(recovery_core::effects{e});
      else
        others.push_back(e);
    }
    return last = text(others);
  }
};

} // namespace troupe::actors::testing
