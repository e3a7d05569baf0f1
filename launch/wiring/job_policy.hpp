#pragma once

#include "actors/topology.hpp"
#include "launch/options/policy.hpp"

namespace troupe::launch {

/// Has the master follow it. `slots`: workers of each node, if it is known. The error is what a
/// file that is named has wrong, or that no world can ever be formed.
result<void> apply_policy(const job_policy& p, std::optional<std::uint32_t> slots,
                          actors::master_options& m);

} // namespace troupe::launch
