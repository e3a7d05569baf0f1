#pragma once

#include "runtime/base/ids.hpp"
#include "runtime/sup/report.hpp"
#include "runtime/sup/shell.hpp"
#include "runtime/sup/spec.hpp"
#include "runtime/sup/supervisor_core.hpp"

#include <caf/actor.hpp>

#include <memory>
#include <vector>

/// Shared by the two halves of the supervisor's shell.
namespace troupe::sup::detail {

/// To itself: the time limit of a stop has passed.
struct stop_due {
  child_key child;
  unsigned incarnation = 0;
};

/// From a child: it has failed, and cleans up.
struct child_failing {
  child_key child;
  unsigned incarnation = 0;
  std::string why;
};

/// From a supervisor below: all its children are up.
struct child_up {
  child_key child;
  unsigned incarnation = 0;
};

class supervisor_shell;

/// The state of a supervisor's actor: there is one from the behaviour function until the actor
/// ends.
struct supervisor_state {
  std::shared_ptr<supervisor_shell> shell;
};

/// One actor serves both kinds of supervisor; those with a fixed list of children refuse to start
/// and stop single ones.
using supervisor_self =
    self_of<dynamic_handle, supervisor_state, stop_due, child_failing, child_up>;
using supervisor_behavior = behavior_of<dynamic_handle, stop_due, child_failing, child_up>;

/// A child as it is before it has been asked, and whom to ask.
struct described_child {
  node_report known;
  /// Empty for a child that is neither running nor stopping: what is known is all there is.
  caf::actor ask;
  /// 0 for a worker, which describes itself; above that, a supervisor, which reports.
  unsigned height = 0;
};

/// Completes a supervisor's report by asking its children, all at once. A silent child has its
/// silence reported.
promise<node_report> gather(supervisor_self self, node_report own,
                            const std::vector<described_child>& children);

} // namespace troupe::sup::detail

TROUPE_LOCAL_MESSAGE(troupe::sup::detail::stop_due)
TROUPE_LOCAL_MESSAGE(troupe::sup::detail::child_failing)
TROUPE_LOCAL_MESSAGE(troupe::sup::detail::child_up)
