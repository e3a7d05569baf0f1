#pragma once

#include "actors/topology.hpp"
#include "launch/options/options.hpp"
#include "launch/wiring/placement.hpp"

#include <cstdint>

namespace troupe::launch {

/// What the command line says about this node's tree. `seed`: for its incarnation and jitter.
actors::node_options node_options_of(const launcher_options& o, const machine_facts& machine,
                                     const placement& where, const node_name& name,
                                     std::uint64_t seed, actors::training_program p);

} // namespace troupe::launch
