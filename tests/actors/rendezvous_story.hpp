#pragma once

#include "actors/master/rendezvous/rendezvous_core.hpp"
#include "tests/actors/vocabulary.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe::actors::testing {

/// A master's rendezvous through the eyes of whoever reads its decisions.
struct rendezvous_story {
  rendezvous_story(std::uint32_t nodes_min, std::uint32_t nodes_max,
                   const std::vector<messages::any_msg>& past = {})
      : rendezvous_story(options(nodes_min, nodes_max), past) {}
  explicit rendezvous_story(const rendezvous_options& o,
                            const std::vector<messages::any_msg>& past = {})
      : core(o, messages::author("master/rendezvous"), dawn) {
    if (!past.empty())
      core.recall(dawn, past);
  }

  static rendezvous_options options(std::uint32_t nodes_min, std::uint32_t nodes_max) {
    rendezvous_options o;
    o.nodes_min = nodes_min;
    o.nodes_max = nodes_max;
    o.last_call = 30s;
    o.join_timeout = 600s;
    o.prepare_within = 60s;
    o.recall_within = 15s;
    return o;
  }

  std::string comes(const node_name& node, std::optional<std::uint32_t> wanted_rank = {},
                    const doing& d = {}) {
    return tell(core.node_present(now, present(node, d, [wanted_rank](auto b) {
                                    if (wanted_rank)
                                      b.setWantedRank(static_cast<std::int32_t>(*wanted_rank));
                                  })));
  }
  std::string goes_away(const node_name& node) { return tell(core.node_away(now, away(node))); }
  std::string is_lost(const node_name& node) { return tell(core.node_lost(now, lost(node))); }
  std::string gets_ready(const node_name& node, std::uint64_t g, std::uint16_t store_port = 0) {
    return tell(core.prepared(now, prepared(node, g, store_port)));
  }
  std::string reforms(std::uint64_t g, std::uint32_t restart_count, const node_name& without = {}) {
    return tell(core.reform(now, reform(g, restart_count, without)));
  }
  std::string concludes(bool success) { return tell(core.conclude(now, conclude(success))); }
  std::string passes(duration d) {
    now += d;
    return tell(core.tick(now));
  }

  /// All members of the world that is being prepared get ready.
  std::string all_get_ready(const std::vector<node_name>& members) {
    const auto g = core.current().value;
    for (const auto& node : members)
      gets_ready(node, g, 4000);
    return last;
  }

  rendezvous_core core;
  instant now = dawn;
  /// What it decided last.
  std::string last;

 private:
  std::string tell(const rendezvous_core::effects& effects) { return last = text(effects); }
};

} // namespace troupe::actors::testing
