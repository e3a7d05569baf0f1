#include "tests/sim/replication_host.hpp"

#include <utility>

namespace troupe::sim {

void sim_replication_host::watch(std::function<void(const ckpt::snapshot_to_copy&)> on_request) {
  on_request_ = std::move(on_request);
  told_.clear();
  tell_requests();
}

void sim_replication_host::look() {
  launcher_->call([me = shared_from_this()] {
    if (me->on_request_)
      me->tell_requests();
  });
}

void sim_replication_host::tell_requests() {
  for (const auto& snapshot : all_.copies_requested_of(node()))
    if (told_.insert(snapshot.key()).second)
      on_request_(snapshot);
}

void sim_replication_host::copy(const ckpt::snapshot_to_copy& snapshot,
                                std::function<void(result<void>)> done) {
  auto& waiters = copies_[snapshot.key()];
  waiters.push_back(std::move(done));
  if (waiters.size() == 1)
    copy_now(snapshot);
}

void sim_replication_host::copy_now(const ckpt::snapshot_to_copy& snapshot) {
  auto words = all_.memory_of(node(), snapshot.local);
  if (words.word(snapshot.slot).sequence != snapshot.sequence || !words.hold(snapshot.slot))
    return copied(snapshot, failure(errc::invalid, "the snapshot is gone"));
  const auto& options = all_.options_;
  all_.copies_.source_of(launcher_, snapshot.local)
      .give(snapshot, all_.content_of(words.snapshot(snapshot.slot)),
            all_.world_.between(options.write_min, options.write_max),
            [weak = weak_from_this(), snapshot](const result<void>& how) {
              if (const auto me = weak.lock()) {
                me->all_.memory_of(me->node(), snapshot.local).release(snapshot.slot);
                me->copied(snapshot, how);
              }
            });
}

void sim_replication_host::copied(const ckpt::snapshot_to_copy& snapshot, const result<void>& how) {
  const auto ended = copies_.extract(snapshot.key());
  for (const auto& done : ended.mapped())
    done(how);
}

void sim_replication_host::learn_owners(const messages::msg<messages::RankOwners>& owners) {
  all_.copies_.learn_owners(node(), owners);
}

void sim_replication_host::finalize(const ckpt::snapshot_to_copy& snapshot,
                                    const result<void>& how) {
  told_.erase(snapshot.key());
  all_.finalize_copy(node(), snapshot, how);
}

} // namespace troupe::sim
