#pragma once

#include "actors/master/addresses.hpp"
#include "actors/master/recovery/recovery.hpp"
#include "runtime/sup/spec.hpp"

/// A generation as a supervision tree at the master.
///
/// A collective cannot lose one member, so the children share one fate: the first member that fails
/// orders all others to stop, each in its own time; the generation ends when all have, with the
/// first one's reason. It ends well when every member's node has finished. It is never restarted:
/// the planner decides which generation follows.
namespace troupe::actors::job {

/// A child below `job`, whose id is the generation in full.
sup::tree generation_tree(const recovery_core::start_generation& what,
                          const rendezvous_options& options, const master_addresses& at);

} // namespace troupe::actors::job
