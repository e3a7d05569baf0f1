#pragma once

#include "ckpt/catalog/checkpoint_host.hpp"

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

/// Images that a test wants written; what a saver then asks for waits until the test has it done.
/// For one thread.
class fake_checkpoints final : public ckpt::checkpoint_host {
 public:
  void want(const ckpt::wanted_image& image) {
    wanted_.push_back(image);
    if (on_wanted_)
      on_wanted_(image);
  }
  /// The oldest that waits, of either kind.
  void write_ends(result<ports::receipt> how) { next(writes_)(std::move(how)); }
  void commit_ends(result<std::uint64_t> how) { next(commits_)(std::move(how)); }

  std::size_t writing() const { return writes_.size(); }
  std::size_t committing() const { return commits_.size(); }
  /// "rank 0: complete", …
  std::vector<std::string> settled;

  void watch(std::function<void(const ckpt::wanted_image&)> on_wanted) override {
    on_wanted_ = std::move(on_wanted);
    for (const auto& image : wanted_)
      on_wanted_(image);
  }
  void look(std::function<void()> done) override { done(); }
  void write(const ckpt::wanted_image&, std::function<void(result<ports::receipt>)> done) override {
    writes_.push_back(std::move(done));
  }
  void commit(const ckpt::commit_order&, std::function<void(result<std::uint64_t>)> done) override {
    commits_.push_back(std::move(done));
  }
  void settle(const ckpt::wanted_image& image, const result<void>& how) override {
    settled.push_back("rank " + std::to_string(image.rank) + ": " +
                      (how ? "complete" : how.error().what));
    for (auto at = wanted_.begin(); at != wanted_.end(); ++at)
      if (at->local == image.local && at->sequence == image.sequence) {
        wanted_.erase(at);
        return;
      }
  }
  void want_newest() override {}
  void watch_copies(std::function<void(const ckpt::image_to_copy&)> on_wanted) override {
    on_copy_wanted_ = std::move(on_wanted);
  }
  void copy(const ckpt::image_to_copy&, std::function<void(result<void>)> done) override {
    copies_.push_back(std::move(done));
  }
  void settle_copy(const ckpt::image_to_copy& image, const result<void>& how) override {
    settled.push_back("rank " + std::to_string(image.rank) + ": " +
                      (how ? "held by others" : how.error().what));
  }
  void want_copies(const ckpt::image_to_copy& image) { on_copy_wanted_(image); }
  void copy_ends(result<void> how) { next(copies_)(std::move(how)); }
  std::size_t copying() const { return copies_.size(); }

 private:
  template<class Done>
  Done next(std::deque<Done>& all) {
    auto first = std::move(all.front());
    all.pop_front();
    return first;
  }

  std::function<void(const ckpt::wanted_image&)> on_wanted_;
  std::function<void(const ckpt::image_to_copy&)> on_copy_wanted_;
  std::vector<ckpt::wanted_image> wanted_;
  std::deque<std::function<void(result<void>)>> copies_;
  std::deque<std::function<void(result<ports::receipt>)>> writes_;
  std::deque<std::function<void(result<std::uint64_t>)>> commits_;
};

} // namespace troupe::testing
