#pragma once

#include "runtime/sup/report.hpp"

#include <string>
#include <utility>
#include <vector>

/// Trees as a master answers with, for tests of what is shown of them.
namespace troupe::launch::testing {

struct tree_row : sup::node_report {
  tree_row(std::string with_name, duration up, std::string doing = {}) {
    name = std::move(with_name);
    kind = "worker";
    state = "running";
    uptime = up;
    phase = std::move(doing);
  }
  tree_row& in(std::string other) {
    state = std::move(other);
    return *this;
  }
  tree_row& ended(duration ago, std::optional<std::string> why = std::nullopt) {
    last_end = sup::past_end{ago, std::move(why)};
    return *this;
  }
  tree_row& budget(unsigned used, unsigned allowed, std::string of = {}) {
    kind = "one_for_one";
    budgets.push_back({std::move(of), used, allowed});
    return *this;
  }
  tree_row& above(std::vector<sup::node_report> below) {
    children = std::move(below);
    return *this;
  }
};

/// Three seconds after rank 3 was killed on node-1; node-0 does not answer.
inline sup::node_report job_after_a_kill() {
  using row = tree_row;
  const duration old = 12min + 5s, young = 3s;
  auto dead = row("generation 7", 0s).in("ended").ended(young, "rank 3: signal 9 (SIGKILL)");
  auto lost =
      row("generation 7", 0s).in("ended").ended(young, "node-1: rank 3: signal 9 (SIGKILL)");
  auto uplink = row("uplink", old, "linked to 127.0.0.1:29400").ended(41s, "actor_threw");
  uplink.mailbox = 3;
  uplink.restarts = 1;
  auto job = row("job", old, "generation 8 runs on 2 nodes")
                 .budget(1, 3)
                 .budget(1, 3, "node-1")
                 .budget(0, 3, "node-0");
  job.above({lost, row("generation 8", young)
                       .above({row("member node-0", young, "2 workers run"),
                               row("member node-1", young, "2 workers run")})});
  auto group = row("worker_group", old);
  group.above({dead, row("generation 8", young)
                         .above({row("rank 2", young, "pid 4711"),
                                 row("rank 3", 412ms, "pid 4712").in("starting")})});
  auto node_1 = row("node-1", old, "node node-1 at 127.0.0.1:40002")
                    .above({row("node_supervisor", old).budget(0, 5).above({group, uplink})});
  auto node_0 =
      row("node-0", old, "node node-0 at 127.0.0.1:40001")
          .above({row("node_supervisor", 0s, "did not answer within 2.0 s").in("silent")});
  auto sessions = row("sessions", old).budget(0, 5);
  sessions.above({row("session 4", 0s).in("ended").ended(20s),
                  row("session 5", 0s).in("ended").ended(5s), node_0, node_1});
  return row("master", old)
      .budget(0, 5)
      .above({job, sessions, row("gateway", old, "listening on 127.0.0.1:29400")});
}

} // namespace troupe::launch::testing
