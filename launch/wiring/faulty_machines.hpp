#pragma once

#include "launch/options/cluster.hpp"
#include "launch/wiring/machine.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/result.hpp"
#include "runtime/ports/cluster.hpp"

#include <memory>
#include <string>

namespace troupe::launch {

/// What marks the machines of broken nodes (--mark-faulty). The error names the option, and what
/// this process lacks for it.
result<std::shared_ptr<ports::cluster>> node_marks_of(const cluster_options& o,
                                                         const machine_facts& machine,
                                                         const std::string& job,
                                                         const log::sink& log);

} // namespace troupe::launch
