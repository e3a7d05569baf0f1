#pragma once

#include "runtime/base/time.hpp"
#include "runtime/sup/protocol.hpp"

#include <cstdint>
#include <string>
#include <vector>

/// What a supervisor can be asked, and what it answers.
namespace troupe::sup {

/// What is known of one actor and those below it.
struct node_report {
  std::string name;
  std::string kind;  ///< "worker", or a supervisor's strategy ("one_for_one", …, "dynamic").
  std::string phase; ///< In the actor's own words, or why nothing is known: "did not answer within
                     ///< 1 s", "down".
  duration uptime{}; ///< Of the current incarnation.
  unsigned restarts = 0;
  int restarts_left = -1;       ///< Of a supervisor's budget within its period; -1 for a worker.
  std::uint64_t unexpected = 0; ///< Messages outside its protocol; more than none is a bug.
  std::vector<node_report> children;
};

/// One line per actor, indented; for logs and tests.
std::string to_text(const node_report& r);

/// Asks a supervisor for a report on its subtree. Every child has limits::describe_within to
/// describe itself.
struct dump {};

/// Ends a child of a dynamic supervisor. Answered once it is down; refused if there is none of that
/// id.
struct stop_child {
  std::string id;
};

/// It has been done.
struct done {};

struct start_child; // spec.hpp

using supervisor_handle = protocol<ask<dump>::yields<node_report>>;
using dynamic_handle = protocol<ask<dump>::yields<node_report>, ask<start_child>::yields<done>,
                                ask<stop_child>::yields<done>>;

} // namespace troupe::sup

TROUPE_LOCAL_MESSAGE(troupe::sup::node_report)
TROUPE_LOCAL_MESSAGE(troupe::sup::dump)
TROUPE_LOCAL_MESSAGE(troupe::sup::stop_child)
TROUPE_LOCAL_MESSAGE(troupe::sup::done)
