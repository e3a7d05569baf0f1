#pragma once

#include "actors/topology.hpp"
#include "runtime/base/invariant.hpp"
#include "runtime/ports/testing/memory_journal.hpp"
#include "tests/actors/stage.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors::testing {

/// A whole master on fakes; a test plays its nodes.
struct master_stage : stage {
  explicit master_stage(std::uint32_t nodes = 2, std::uint32_t max_restarts = 3,
                        std::uint64_t seed = 1)
      : stage(seed) {
    options.membership.job = "job";
    options.membership.return_within = 3s;
    options.rendezvous = {};
    options.rendezvous.nodes_min = options.rendezvous.nodes_max = nodes;
    options.recovery.max_restarts = max_restarts;
    options.gateway.listen_on = {"127.0.0.1", 0};
  }

  /// Starts the master, on what is on the disk.
  void begin() {
    auto opened = ports::testing::memory_journal::open(disk, [this](std::function<void()> call) {
      if (journal_is_slow)
        journal_calls.push_back(std::move(call));
      else
        call();
    });
    master_world world{transport, std::shared_ptr<ports::journal_store>(std::move(*opened))};
    world.cluster = cluster;
    master_events events;
    events.on_listening = [this](const ports::endpoint& where) { listening.push_back(where); };
    events.on_verdict = [this](const recovery_core::verdict& v) { verdicts.push_back(v); };
    events.on_everyone_left = [this] { ++everyone_left; };
    play(master_tree(world, options, at, events));
  }

  /// The journal answers what it was asked.
  void journal_answers() {
    for (auto& call : std::exchange(journal_calls, {}))
      call();
    settle();
  }

  /// A node dials, as it is: the older link of this name, if any, is forgotten.
  void join(const node_name& node, const doing& d = {}, std::uint64_t which = 1) {
    const auto m = hello(node, which, [&d, &node](messages::Hello::Builder b) {
      auto as_present = present(node, d).read();
      b.setState(as_present->getState());
    });
    links[node] = transport->knock(m);
    settle();
  }

  void says(const node_name& node, const messages::any_msg& m) {
    links.at(node)->arrives(m);
    settle();
  }

  std::string hears(const node_name& node) { return heard(*links.at(node)); }

  /// Both nodes of a job of two run in generation g.
  void run_two(std::uint64_t g = 1) {
    says("a", prepared("a", g, 4000).any());
    says("b", prepared("b", g).any());
    says("a", running("a", g).any());
    says("b", running("b", g).any());
    hears("a");
    hears("b");
  }

  /// Nothing of generation g is left on either node.
  void stop_two(std::uint64_t g = 1) {
    says("a", stopped("a", g).any());
    says("b", stopped("b", g).any());
  }

  /// Each node that lost its link dials again, doing what it did.
  std::string who_lost_its_link() const {
    std::string all;
    for (const auto& [node, link] : links)
      if (link->ended())
        all += (all.empty() ? "" : " ") + node;
    return all;
  }

  session::handle session_of(const node_name& node) {
    const auto all = ask<membership::present>(at.membership.current(),
                                              messages::local<messages::ListNodes>("test"));
    invariant(all.has_value(), "membership does not answer");
    for (const auto& one : all->nodes)
      if (one.node == node)
        return one.where;
    invariant(false, "this node has no session: " + node);
    return {};
  }

  std::string journalled() const {
    std::string all;
    for (const auto& bytes : disk.records)
      all += (all.empty() ? "" : "\n") + text(*messages::admit(bytes.data(), bytes.size()));
    return all;
  }

  master_options options;
  master_addresses at;
  ports::testing::memory_disk disk;
  std::shared_ptr<ports::cluster> cluster = std::make_shared<ports::no_cluster>();
  bool journal_is_slow = false;
  std::deque<std::function<void()>> journal_calls;
  std::shared_ptr<troupe::testing::fake_transport> transport =
      std::make_shared<troupe::testing::fake_transport>();
  std::map<node_name, troupe::testing::fake_link_ptr> links;
  std::vector<ports::endpoint> listening;
  std::vector<recovery_core::verdict> verdicts;
  std::size_t everyone_left = 0;
};

} // namespace troupe::actors::testing
