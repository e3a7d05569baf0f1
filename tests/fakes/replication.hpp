#pragma once

#include "ckpt/copies/replication_host.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

/// Snapshots that a test wants held by others; each waits until the test has it given. For one
/// thread.
class fake_replication final : public ckpt::replication_host {
 public:
  void request(const ckpt::snapshot_to_copy& snapshot) {
    requests_.push_back(snapshot);
    if (on_request_)
      on_request_(snapshot);
  }
  /// The oldest that waits. All that ask for the same snapshot hear it.
  void copy_ends(const result<void>& how) {
    const auto first = std::move(copies_.front());
    copies_.pop_front();
    for (const auto& done : first.done)
      done(how);
  }
  std::size_t copying() const { return copies_.size(); }
  /// "rank 0: held by others", …
  std::vector<std::string> finalized;
  /// The generations whose owners were told.
  std::vector<generation> owners_of;

  void watch(std::function<void(const ckpt::snapshot_to_copy&)> on_request) override {
    on_request_ = std::move(on_request);
    for (const auto& snapshot : requests_)
      on_request_(snapshot);
  }
  void copy(const ckpt::snapshot_to_copy& snapshot,
            std::function<void(result<void>)> done) override {
    const auto known =
        std::find_if(copies_.begin(), copies_.end(),
                     [&snapshot](const copying_one& c) { return c.key == snapshot.key(); });
    auto& one = known == copies_.end() ? copies_.emplace_back() : *known;
    one.key = snapshot.key();
    one.done.push_back(std::move(done));
  }
  void finalize(const ckpt::snapshot_to_copy& snapshot, const result<void>& how) override {
    finalized.push_back("rank " + std::to_string(snapshot.rank) + ": " +
                        (how ? "held by others" : how.error().what));
    requests_.erase(std::remove_if(requests_.begin(), requests_.end(),
                                   [&snapshot](const ckpt::snapshot_to_copy& r) {
                                     return r.key() == snapshot.key();
                                   }),
                    requests_.end());
  }
  void learn_owners(const messages::msg<messages::RankOwners>& owners) override {
    owners_of.push_back(owners.envelope().about);
  }

 private:
  struct copying_one {
    ckpt::snapshot_key key;
    std::vector<std::function<void(result<void>)>> done;
  };

  std::function<void(const ckpt::snapshot_to_copy&)> on_request_;
  std::vector<ckpt::snapshot_to_copy> requests_;
  std::deque<copying_one> copies_;
};

} // namespace troupe::testing
