#pragma once

#include "actors/master/network_check/network_check_core_evidence.hpp"

namespace troupe::actors::network_check {

/// What the results say once no further round is probed.
verdict judge(const history& so_far, const evidence& e, const policy& with);

} // namespace troupe::actors::network_check
