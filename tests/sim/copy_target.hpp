#pragma once

#include "ckpt/copies/rank_owners.hpp"
#include "ckpt/copies/target_core.hpp"
#include "tests/sim/copy_link.hpp"
#include "tests/sim/piece_memory.hpp"

#include <map>
#include <memory>

namespace troupe::sim {

/// The twin of runtime/os/copies/replication_target: what a node supervisor does about pieces that
/// others give, until it ends. Its memory stays.
class copy_target : public std::enable_shared_from_this<copy_target> {
 public:
  copy_target(world& of, host_ptr launcher, sim_piece_memory& memory);

  /// A source has come.
  void accept(const std::shared_ptr<copy_link>& link);
  void learn(const messages::msg<messages::RankOwners>& m) { owners_.learn(m); }

 private:
  using core = ckpt::target_core;

  void heard(core::connection_id from, const messages::any_msg& m);
  void closed(core::connection_id which, const std::string& why);
  bool speaks_for_its_ranks(core::connection_id from, const messages::any_msg& m);
  void act(core::effects first);

  core::effects perform(const core::open& o);
  core::effects perform(const core::grow& g);
  core::effects perform(const core::add& a);
  core::effects perform(const core::finish& f);
  core::effects perform(const core::drop& d);
  core::effects perform(const core::reply& r);
  core::effects perform(const core::note& n);

  world& world_;
  const host_ptr launcher_;
  sim_piece_memory& memory_;
  core core_;
  ckpt::rank_owners owners_;
  core::connection_id last_ = 0;
  std::map<core::connection_id, std::shared_ptr<copy_link>> links_;
};

} // namespace troupe::sim
