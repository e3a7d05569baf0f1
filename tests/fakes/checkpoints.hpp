#pragma once

#include "ckpt/catalog/checkpoint_host.hpp"

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

/// Snapshots that a test wants written; what a saver then asks for waits until the test has it
/// done. For one thread.
class fake_checkpoints final : public ckpt::checkpoint_host {
 public:
  void request_persist(const ckpt::persist_request& snapshot) {
    requests_.push_back(snapshot);
    if (on_request_)
      on_request_(snapshot);
  }
  /// The oldest that waits, of either kind.
  void write_ends(result<ports::receipt> how) { next(writes_)(std::move(how)); }
  void commit_ends(result<ckpt::completed> how) { next(commits_)(std::move(how)); }

  std::size_t writing() const { return writes_.size(); }
  std::size_t committing() const { return commits_.size(); }
  /// "rank 0: complete", …
  std::vector<std::string> finalized;

  void watch(std::function<void(const ckpt::persist_request&)> on_request) override {
    on_request_ = std::move(on_request);
    for (const auto& snapshot : requests_)
      on_request_(snapshot);
  }
  void look(std::function<void()> done) override { done(); }
  void write(const ckpt::persist_request&,
             std::function<void(result<ports::receipt>)> done) override {
    writes_.push_back(std::move(done));
  }
  void commit(const ckpt::commit_order&,
              std::function<void(result<ckpt::completed>)> done) override {
    commits_.push_back(std::move(done));
  }
  /// "step 100 with saves from 7 open", …
  std::vector<std::string> retained;
  void retain(const ckpt::retain_order& order) override {
    retained.push_back(order.to.directory + " with saves from " +
                       std::to_string(order.now.open_from.number) + " open");
  }
  void finalize(const ckpt::persist_request& snapshot, const result<void>& how) override {
    finalized.push_back("rank " + std::to_string(snapshot.rank) + ": " +
                        (how ? "complete" : how.error().what));
    for (auto at = requests_.begin(); at != requests_.end(); ++at)
      if (at->local == snapshot.local && at->sequence == snapshot.sequence) {
        requests_.erase(at);
        return;
      }
  }
  void request_newest() override {}

 private:
  template<class Done>
  Done next(std::deque<Done>& all) {
    auto first = std::move(all.front());
    all.pop_front();
    return first;
  }

  std::function<void(const ckpt::persist_request&)> on_request_;
  std::vector<ckpt::persist_request> requests_;
  std::deque<std::function<void(result<ports::receipt>)>> writes_;
  std::deque<std::function<void(result<ckpt::completed>)>> commits_;
};

} // namespace troupe::testing
