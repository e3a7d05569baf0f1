#pragma once

#include "actors/master/diagnosis/diagnosis_core.hpp"
#include "diag/stacks_archive.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

#include <functional>
#include <memory>
#include <string>

namespace troupe::actors {
struct master_addresses;
}

/// Says which rank keeps the others waiting: see diagnosis_core.hpp. Has the stacks of all ranks
/// gathered, after a verdict and when a person asks. State: none; the planner is asked which world
/// runs, and the nodes' next reports say all else.
namespace troupe::actors::diagnosis {

using handle = sup::protocol<
    // From a node's hang_watchdog, through its session.
    sup::tell<messages::msg<messages::ProgressReport>>,
    sup::tell<messages::msg<messages::MergedStacks>>,
    // From a node's agent, through its session: its part in a generation ends.
    sup::tell<messages::msg<messages::Failed>>, sup::tell<messages::msg<messages::Stopped>>,
    // From rendezvous, and from the planner when it was asked: which node has which ranks.
    sup::tell<messages::msg<messages::Sealed>>,
    // From membership.
    sup::tell<messages::msg<messages::NodeLost>>,
    // From a shell, through its session. One that comes while stacks are gathered joins that.
    sup::ask<messages::msg<messages::StacksRequest>>::yields<
        messages::msg<messages::StacksReport>>>;

/// A verdict, with the directory of its stacks once they are written.
struct finding {
  messages::msg<messages::Diagnosed> what;
  std::string stacks; ///< empty: none
};
using hook = std::function<void(const finding&)>;

struct options {
  diagnosis_policy policy;
  std::shared_ptr<diag::stacks_archive> stacks = std::make_shared<diag::no_stacks_archive>();
  hook notify = [](const finding&) {};
};

handle start(sup::context& ctx, const options& o, const master_addresses& master);

} // namespace troupe::actors::diagnosis
