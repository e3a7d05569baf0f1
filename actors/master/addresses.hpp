#pragma once

#include "actors/master/catalog/catalog.hpp"
#include "actors/master/diagnosis/diagnosis.hpp"
#include "actors/master/gateway/gateway.hpp"
#include "actors/master/job/generation/rendezvous/rendezvous.hpp"
#include "actors/master/journal/journal.hpp"
#include "actors/master/membership/membership.hpp"
#include "actors/master/network_check/network_check.hpp"
#include "actors/master/recovery/recovery.hpp"
#include "actors/master/witness/witness.hpp"
#include "runtime/sup/address.hpp"
#include "runtime/sup/report.hpp"

namespace troupe::actors {

/// Where the master's actors find each other, and as whom they write. Copies are the same places.
struct master_addresses {
  /// Stamped on every message of this master.
  term commands_as;
  sup::address<journal::handle> journal;
  sup::address<membership::handle> membership;
  sup::address<recovery::handle> recovery;
  sup::address<sup::dynamic_handle> job;
  /// Of the generation that is being formed.
  sup::address<rendezvous::handle> rendezvous;
  sup::address<catalog::handle> catalog;
  sup::address<diagnosis::handle> diagnosis;
  sup::address<network_check::handle> network_check;
  sup::address<witness::handle> witness;
  sup::address<sup::dynamic_handle> sessions;
  sup::address<gateway::handle> gateway;
  sup::address<sup::supervisor_handle> root;
};

} // namespace troupe::actors
