#pragma once

#include "tests/sim/cluster.hpp"
#include "tests/sim/run.hpp"

#include <string>
#include <vector>

/// A master and its successor at the same time (ADR 12).
namespace troupe::sim {

/// Nothing gets through between these nodes and a master.
void cut(cluster& c, const std::vector<std::string>& side, const std::string& from);
/// Some nodes, of any number, are cut off from the master, and a moment later a rival is there that
/// they look for.
void split(cluster& c);
/// Where the node looks for its master from now on.
void send_to_rival(cluster& c, const std::string& node);

/// One life of a job that saves all the time: some nodes are cut off and follow another master,
/// nodes change sides, and directories, machines and supervisors fail. Then the older master is
/// ended, all is healed, and the job must come to a good end.
run_outcome run_two_masters(const run_options& o);

} // namespace troupe::sim
