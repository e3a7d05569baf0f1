#pragma once

#include "actors/node_supervisor/worker_group/leader/leader_core.hpp"
#include "runtime/ports/keeping.hpp"
#include "runtime/ports/process.hpp"
#include "runtime/ports/store.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

#include <functional>
#include <memory>
#include <string>

namespace troupe::actors {
struct node_addresses;
}

/// Decides about this node's training processes: see leader_core.hpp. Owns the store of its
/// generation. State: of a crashed supervisor from what was kept, once the uplink's first question
/// shows that this node's actors are there; else nothing survives: its processes and their store
/// end with it, and the next hello says so.
namespace troupe::actors::leader {

/// What the leader must be told about the training program; made by the launcher.
struct program {
  /// The process for one place. May make the directories its files go to.
  std::function<result<ports::process_spec>(const assignment&)> spec;
  /// Why it failed, e.g. from the error file it wrote; called after the process has ended, may read
  /// small files.
  std::function<obituary(const assignment&, const ports::exit_status&)> explain;
  /// The process of a supervisor that crashed goes on as this one's.
  std::function<void(const assignment&)> adopted = [](const assignment&) {};
  /// Its process is gone, or could not be started after all; may come twice.
  std::function<void(const assignment&)> ended = [](const assignment&) {};
};

/// From a worker_process, about the process of one local rank.
struct process_started {
  generation which;
  local_rank local = 0;
  std::int32_t pid = 0;
};
struct process_not_started {
  generation which;
  local_rank local = 0;
  std::string why;
};
struct process_ended {
  generation which;
  local_rank local = 0;
  ports::exit_status status;
};
/// Its actor has ended, and the process with it. Means nothing after process_ended.
struct process_abandoned {
  generation which;
  local_rank local = 0;
};
/// The user's signal.
struct interrupt {
  int signal = 0;
};
/// A signal for the workers only.
struct pass_on {
  int signal = 0;
};
struct abandon {
  std::string reason;
};

using handle = sup::protocol<
    // Directives of the master.
    sup::tell<messages::msg<messages::Prepare>>, sup::tell<messages::msg<messages::Start>>,
    sup::tell<messages::msg<messages::Stop>>, sup::tell<messages::msg<messages::StandBy>>,
    sup::tell<messages::msg<messages::Conclude>>,
    // What to say in a hello.
    sup::ask<messages::msg<messages::StateRequest>>::yields<messages::msg<messages::NodeState>>,
    // From this node.
    sup::tell<process_started>, sup::tell<process_not_started>, sup::tell<process_ended>,
    sup::tell<process_abandoned>, sup::tell<interrupt>, sup::tell<pass_on>, sup::tell<abandon>>;

/// `on_over` is called once, when this node's part in the job has ended and its processes are gone.
handle start(sup::context& ctx, leader_options options, program what, std::string address,
             const std::shared_ptr<ports::process_host>& processes,
             const std::shared_ptr<ports::store_host>& stores,
             const std::shared_ptr<ports::keeping>& keeping, const node_addresses& node,
             std::function<void(const node_outcome&)> on_over);

} // namespace troupe::actors::leader

TROUPE_LOCAL_MESSAGE(troupe::actors::leader::process_started)
TROUPE_LOCAL_MESSAGE(troupe::actors::leader::process_not_started)
TROUPE_LOCAL_MESSAGE(troupe::actors::leader::process_ended)
TROUPE_LOCAL_MESSAGE(troupe::actors::leader::process_abandoned)
TROUPE_LOCAL_MESSAGE(troupe::actors::leader::interrupt)
TROUPE_LOCAL_MESSAGE(troupe::actors::leader::pass_on)
TROUPE_LOCAL_MESSAGE(troupe::actors::leader::abandon)
