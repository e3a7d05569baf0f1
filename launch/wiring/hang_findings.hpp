#pragma once

#include "actors/topology.hpp"
#include "launch/options/hangs.hpp"
#include "runtime/base/log.hpp"

#include <string>

namespace troupe::launch {

/// What the master does about ranks that stand still: what the options say, with pictures of stacks
/// below `directory`, and `--hang-command` on this machine.
void take_hang_options(const hang_options& o, const std::string& directory, const log::sink& sink,
                       actors::diagnosis::options& of);

/// What a node is told of it: when its ranks count as standing still.
actors::watch_policy watch_policy_of(const hang_options& o);

} // namespace troupe::launch
