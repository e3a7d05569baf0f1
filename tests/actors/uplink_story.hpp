#pragma once

#include "actors/node_supervisor/uplink/uplink_core.hpp"
#include "tests/actors/vocabulary.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace troupe::actors::testing {

inline messages::any_msg welcome(term from = {}) {
  return messages::author("master", from).write<messages::Welcome>({}, [](auto) {}).any();
}

inline messages::any_msg refused(bool retry, std::uint32_t retry_after_ms = 0, term from = {},
                                 const std::string& job = "job") {
  return messages::author("master", from)
      .write<messages::Refused>({},
                                [&](auto b) {
                                  b.setJob(job);
                                  b.setReason("not you");
                                  b.setRetry(retry);
                                  b.setRetryAfterMs(retry_after_ms);
                                })
      .any();
}

inline messages::any_msg dispensable(bool others_suffice) {
  return messages::author("master")
      .write<messages::Dispensable>(
          {}, [others_suffice](auto b) { b.setOthersSuffice(others_suffice); })
      .any();
}

inline uplink_options uplink_told() {
  uplink_options o;
  o.job = "job";
  o.node = "a";
  o.address = "a.lan";
  o.bulk_port = 4713;
  o.slots = 8;
  o.role = "trainer";
  o.wanted_rank = 3;
  o.nodes_min = o.nodes_max = 4;
  o.master = "master:29400";
  o.connect_within = 60s;
  o.train_on_within = 30min;
  o.redial_first = 100ms;
  o.redial_max = 5s;
  return o;
}

/// A node's uplink, told as a story: what happens to it, and its decisions as text.
struct uplink_story {
  uplink_core core{uplink_told(), messages::author("a/uplink"), random_source(1), incarnation{7},
                   dawn};
  instant now = dawn;
  std::vector<messages::msg<messages::Hello>> hellos;

  std::string tell(const uplink_core::effects& effects) {
    for (const auto& e : effects)
      if (const auto* d = std::get_if<uplink_core::dial>(&e))
        hellos.push_back(d->hello);
    return text(effects);
  }

  std::string knows(const doing& d) { return tell(core.state_known(now, node_state(d))); }
  std::string dialled() { return tell(core.dialled(now, std::nullopt)); }
  std::string not_dialled(errc code) { return tell(core.dialled(now, error{code, "no route"})); }
  std::string hears(const messages::any_msg& m) { return tell(core.received(now, m)); }
  std::string link_ends() { return tell(core.closed(now, "reset by peer")); }
  std::string agent_restarts() { return tell(core.renew(now)); }
  std::string reports(const messages::any_msg& m) { return tell(core.report(m)); }
  std::string ticks() { return tell(core.tick(now)); }

  /// Lets time pass until the next attempt begins.
  std::string waits() {
    const auto at = core.next_wakeup();
    REQUIRE(at);
    now = std::max(now, *at);
    return ticks();
  }
  void links(const doing& d = {}) {
    waits();
    knows(d);
    dialled();
    hears(welcome());
    REQUIRE(core.current_phase() == uplink_core::phase::linked);
  }
};

} // namespace troupe::actors::testing
