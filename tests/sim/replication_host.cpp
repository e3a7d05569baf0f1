#include "tests/sim/replication_host.hpp"

#include <utility>

namespace troupe::sim {

void sim_replication_host::watch(std::function<void(const ckpt::snapshot_to_copy&)> on_request) {
  on_request_ = std::move(on_request);
  for (const auto& snapshot : all_.memories_[node()].to_copy)
    on_request_(snapshot);
}

void sim_replication_host::copy(const ckpt::snapshot_to_copy& snapshot,
                                std::function<void(result<void>)> done) {
  const auto takes = all_.world_.between(all_.options_.write_min, all_.options_.write_max);
  launcher_->call_in(takes, [me = shared_from_this(), snapshot, done = std::move(done)] {
    me->all_.copies_.give(me->launcher_, snapshot, done);
  });
}

void sim_replication_host::finalize(const ckpt::snapshot_to_copy& snapshot,
                                    const result<void>& how) {
  all_.finalize_copy(node(), snapshot, how);
}

void sim_replication_host::tell(const ckpt::snapshot_to_copy& snapshot) {
  launcher_->call([me = shared_from_this(), snapshot] {
    if (me->on_request_)
      me->on_request_(snapshot);
  });
}

} // namespace troupe::sim
