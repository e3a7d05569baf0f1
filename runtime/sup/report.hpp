#pragma once

#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"
#include "runtime/sup/protocol.hpp"
#include "runtime/sup/strategy.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// What a supervisor can be asked, and what it answers.
namespace troupe::sup {

/// How an incarnation ended.
struct past_end {
  duration ago{};
  std::optional<std::string> why; ///< Nothing: it ended well, or as it was asked to.
  std::string asked;              ///< What for, if it was; may be empty.

  /// In words; empty if there is nothing to say.
  const std::string& reason() const { return why ? *why : asked; }
};

/// How much of a supervisor's restart budget is used, in all or under one name.
struct budget_use {
  std::string of; ///< Empty: in all, within the budget's period.
  unsigned used = 0;
  unsigned allowed = 0;
};

/// What is known of one actor and those below it.
struct node_report {
  std::string name;
  std::string kind;  ///< "worker", or a supervisor's strategy ("one_for_one", …, "dynamic").
  std::string state; ///< "starting", "running", "stopping", "down"; "silent" for one that did not
                     ///< answer; "ended" for a child that a dynamic supervisor had until a while
                     ///< ago.
  std::string phase; ///< In the actor's own words, or why it has said nothing: "did not answer
                     ///< within 1 s". Of a supervisor: why it is stopping.
  duration uptime{}; ///< Of the current incarnation.
  std::size_t mailbox = 0;          ///< Messages that wait.
  unsigned restarts = 0;            ///< Of this child.
  std::vector<budget_use> budgets;  ///< Of a supervisor.
  std::optional<past_end> last_end; ///< Of the incarnation before, or of one that has ended.
  std::uint64_t unexpected = 0;     ///< Messages outside its protocol; more than none is a bug.
  std::vector<node_report> children;
};

/// One line per actor, indented; for logs and tests.
std::string to_text(const node_report& r);

/// Asks a supervisor for a report on its subtree. Every child has limits::describe_within to
/// describe itself.
struct dump {};

/// Ends a child of a dynamic supervisor. Answered once it is down; refused if there is none of that
/// id. Sent again, the new order reaches a child that is on its way down.
struct stop_child {
  std::string id;
  stop_order order{stop_order::cause::asked, {}, 0, {}};
};

/// To a dynamic supervisor that begins anew: what was counted against its budget before.
struct recall_restarts {
  std::map<std::string, unsigned> used;
};

/// A dynamic supervisor's child has ended for good.
struct child_end {
  std::string id;
  std::optional<error> why; ///< Nothing: it ended well, or as it was asked to.
};

/// It has been done.
struct done {};

struct start_child; // spec.hpp

using supervisor_handle = protocol<ask<dump>::yields<node_report>>;
using dynamic_handle = protocol<ask<dump>::yields<node_report>, ask<start_child>::yields<done>,
                                ask<stop_child>::yields<done>, tell<recall_restarts>>;

} // namespace troupe::sup

TROUPE_LOCAL_MESSAGE(troupe::sup::node_report)
TROUPE_LOCAL_MESSAGE(troupe::sup::dump)
TROUPE_LOCAL_MESSAGE(troupe::sup::stop_child)
TROUPE_LOCAL_MESSAGE(troupe::sup::recall_restarts)
TROUPE_LOCAL_MESSAGE(troupe::sup::child_end)
TROUPE_LOCAL_MESSAGE(troupe::sup::done)
