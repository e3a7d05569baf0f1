#pragma once

#include "actors/command_identity.hpp"
#include "launch/options/options.hpp"

namespace troupe::launch {

/// What a node of this launcher runs. The script counts by its own name, since each node may have
/// it at another place. Its arguments count only where launchers are interchangeable, that is,
/// where neither a job's id nor a node's rank was given: a launcher that was told either was
/// started for this job, and its arguments may name its own disk or rank.
actors::command_identity command_of(const launcher_options& o);

} // namespace troupe::launch
