#pragma once

#include "actors/master/network_check/network_check_core_evidence.hpp"

namespace troupe::actors::network_check {

/// The groups of this round, counted from 0; none: nothing more can be learnt.
groups plan(const evidence& e, std::size_t round_number, const policy& with);

/// Once that is nothing: a suspect and the witness, of which neither says more without the other.
groups plan_with_witness(const evidence& e);

} // namespace troupe::actors::network_check
