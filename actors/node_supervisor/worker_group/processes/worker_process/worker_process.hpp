#pragma once

#include "actors/node_supervisor/worker_group/leader/leader.hpp"
#include "runtime/ports/process.hpp"
#include "runtime/sup/context.hpp"
#include "runtime/sup/protocol.hpp"

#include <memory>
#include <variant>

/// Owns one training process: starts or adopts it when it starts itself, ends it when told, and
/// tells the leader how it ended. The process never outlives its actor. State: nothing survives.
namespace troupe::actors::worker_process {

/// Ask the process to end; SIGKILL when it is still there after `within`.
struct end {
  int signal = 0;
  duration within{};
};

/// A signal of the user's; means nothing to a process that is to end.
struct pass_on {
  int signal = 0;
};

using handle = sup::protocol<sup::tell<end>, sup::tell<pass_on>>;

/// What to start, or what an earlier supervisor had started.
using origin = std::variant<ports::process_spec, ports::survivor>;

handle start(sup::context& ctx, const assignment& place, origin from,
             std::shared_ptr<ports::process_host> processes, sup::address<leader::handle> leader);

} // namespace troupe::actors::worker_process

TROUPE_LOCAL_MESSAGE(troupe::actors::worker_process::end)
TROUPE_LOCAL_MESSAGE(troupe::actors::worker_process::pass_on)
