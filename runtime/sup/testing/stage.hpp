#pragma once

#include "runtime/base/invariant.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/base/random.hpp"
#include "runtime/sup/root.hpp"
#include "runtime/sup/spec.hpp"
#include "runtime/sup/testing/children.hpp"
#include "runtime/sup/testing/simulated_engine.hpp"

#include <caf/actor_system.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::sup {

/// A simulated engine with a tree on it, and everything that was said: what tests of supervision
/// share.
class stage {
 public:
  explicit stage(std::uint64_t seed = 1) : random(seed) {}

  struct line {
    std::string component;
    log::event event;
  };

  log::sink sink() {
    return [this](const std::string& component, const log::event& e) {
      said.push_back({component, e});
    };
  }

  /// Starts a tree and runs until nothing follows.
  void play(const tree& t) {
    running.emplace(
        spawn_root(engine.system(), t, sink(), [this](const ending& e) { endings.push_back(e); }));
    settle();
  }

  void settle() { engine.run_all(random); }
  void pass(duration d) { engine.run_for(d, random); }

  template<class Msg>
  void say(const address<children::handle>& to, Msg m) {
    const auto h = to.current();
    if (h)
      caf::anon_send(h, m);
    settle();
  }

  /// How often this was reported, under its machine-readable name.
  std::size_t count(const std::string& name) const {
    std::size_t n = 0;
    for (const auto& l : said)
      n += l.event.name == name ? 1 : 0;
    return n;
  }

  /// The last event of this name; fails the caller by exception if there is none.
  const line& last(const std::string& name) const {
    for (auto at = said.rbegin(); at != said.rend(); ++at) {
      if (at->event.name == name)
        return *at;
    }
    throw invariant_broken("nothing was said about " + name);
  }

  std::optional<node_report> report() {
    std::optional<node_report> got;
    running->report([&got](result<node_report> r) {
      if (r)
        got = *r;
    });
    pass(limits::describe_within * 4);
    return got;
  }

  random_source random;
  children::diary diary;
  std::vector<line> said;
  std::vector<ending> endings;
  simulated_engine engine;
  std::optional<root> running;
};

} // namespace troupe::sup
