#pragma once

#include "actors/node_supervisor/training/agent/agent_core.hpp"
#include "runtime/ports/keeping.hpp"
#include "runtime/ports/process.hpp"
#include "runtime/ports/store.hpp"
#include "runtime/sup/address.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"
#include "runtime/sup/report.hpp"

#include <functional>
#include <memory>
#include <string>

namespace troupe::actors {
struct node_addresses;
}

/// This node's part in the job: see agent_core.hpp. It prepares a generation, has worker_group
/// start and stop it as one child, hears of its workers and of its end, and owns the workers'
/// store. State: of a crashed supervisor from what was kept, once the uplink's first question shows
/// that this node's actors are there; else nothing survives: a generation whose agent has crashed
/// ends with it, and the next hello says so.
namespace troupe::actors::agent {

using handle = sup::protocol<
    // Directives of the master.
    sup::tell<messages::msg<messages::Prepare>>, sup::tell<messages::msg<messages::Start>>,
    sup::tell<messages::msg<messages::Stop>>, sup::tell<messages::msg<messages::EndWanted>>,
    sup::tell<messages::msg<messages::Leave>>, sup::tell<messages::msg<messages::StandBy>>,
    sup::tell<messages::msg<messages::Conclude>>, sup::tell<messages::msg<messages::EndWorker>>,
    // What to say in a hello.
    sup::ask<messages::msg<messages::StateRequest>>::yields<messages::msg<messages::NodeState>>,
    // From the workers.
    sup::tell<messages::msg<messages::WorkerStarted>>,
    sup::ask<messages::msg<messages::WorkerEnded>>::yields<messages::msg<messages::WorkerEndNoted>>,
    // From the hang watchdog, when it begins.
    sup::ask<messages::msg<messages::WatchRequest>>::yields<messages::msg<messages::Watched>>,
    // From the persister.
    sup::tell<messages::msg<messages::SnapshotWanted>>,
    // From worker_group.
    sup::tell<messages::msg<messages::GenerationEnded>>,
    // From this node.
    sup::tell<messages::msg<messages::Interrupt>>, sup::tell<messages::msg<messages::WorkerSignal>>,
    sup::tell<messages::msg<messages::Abandon>>>;

/// What a successor adopts.
inline constexpr ports::kept_slot<messages::Underway> underway_slot{0};

struct world {
  std::shared_ptr<ports::process_host> processes;
  std::shared_ptr<ports::store_host> stores;
  std::shared_ptr<ports::keeping> keeping;
};

/// `on_over` is called once, when this node's part
/// in the job has ended and its processes are gone.
handle start(sup::context& ctx, agent_options options, training_program what, const world& of,
             const node_addresses& node, std::function<void(const node_outcome&)> on_over);

/// What worker_group does when a generation has ended: it tells the agent.
std::function<void(const sup::child_end&)> hears_of_ends(const sup::address<handle>& agent);

} // namespace troupe::actors::agent
