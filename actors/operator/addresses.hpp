#pragma once

#include "actors/operator/election/election.hpp"
#include "actors/operator/informer/informer.hpp"
#include "runtime/sup/address.hpp"
#include "runtime/sup/report.hpp"

namespace troupe::actors {

/// Where the operator's actors find each other. Copies are the same places.
struct operator_addresses {
  sup::address<election::handle> election;
  sup::address<informer::handle> informer;
  sup::address<sup::dynamic_handle> jobs;
};

} // namespace troupe::actors
