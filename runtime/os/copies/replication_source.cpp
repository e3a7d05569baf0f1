#include "runtime/os/copies/replication_source.hpp"

#include "ckpt/limits.hpp"
#include "runtime/os/copies/snapshot_sending.hpp"

#include <fmt/format.h>

#include <chrono>
#include <deque>
#include <optional>
#include <thread>
#include <utility>

namespace troupe::ckpt {

class replication_source::impl {
 public:
  impl(std::shared_ptr<ports::transport> transport, replication_source_options options)
      : options_(std::move(options)), author_(options_.node + "/replicator"),
        rate_(options_.bytes_per_second, limits::copy_burst),
        links_(std::move(transport), wake_point_), thread_([this] { run(); }) {}

  ~impl() {
    {
      const std::lock_guard held(wake_point_->lock);
      stop_ = true;
    }
    wake_point_->wake();
    thread_.join();
  }

  void give(const snapshot_to_copy& snapshot, ports::bytes_view memory,
            std::function<void(result<void>)> done) {
    {
      const std::lock_guard held(wake_point_->lock);
      if (waiting_.size() < limits::persist_requests_max) {
        waiting_.push_back({snapshot, memory, std::move(done)});
        done = nullptr;
      }
    }
    wake_point_->wake();
    if (done)
      done(failure(errc::overloaded, fmt::format("copies of {} images are waited for already",
                                                 limits::persist_requests_max)));
  }

 private:
  struct job {
    snapshot_to_copy snapshot;
    ports::bytes_view memory;
    std::function<void(result<void>)> done;
  };

  static instant now() { return std::chrono::steady_clock::now(); }

  /// Sleeps until something happens that was not yet when `seen` wakes had been heard, or then.
  void sleep(std::uint64_t seen, instant until) {
    std::unique_lock held(wake_point_->lock);
    wake_point_->woken.wait_until(held, until, [this, seen] { return wake_point_->wakes != seen; });
  }

  std::uint64_t wakes() const {
    const std::lock_guard held(wake_point_->lock);
    return wake_point_->wakes;
  }

  bool stopped() const {
    const std::lock_guard held(wake_point_->lock);
    return stop_;
  }

  std::optional<job> next_job() {
    const std::lock_guard held(wake_point_->lock);
    if (waiting_.empty())
      return std::nullopt;
    auto next = std::move(waiting_.front());
    waiting_.pop_front();
    return next;
  }

  void run() {
    auto idle_since = now();
    for (;;) {
      const auto seen = wakes();
      if (const auto next = next_job()) {
        next->done(given(*next));
        idle_since = now();
        continue;
      }
      if (stopped())
        return;
      // No answer is due now; this only notices targets that have gone, for the next snapshot.
      while (links_.next()) {
      }
      if (now() >= idle_since + limits::copy_links_idle)
        links_.drop_all_but({}, "there is nothing to give");
      sleep(seen, links_.empty() ? instant::max() : idle_since + limits::copy_links_idle);
    }
  }

  result<void> given(const job& j) {
    auto plan = sending_plan::make(j.snapshot.by, j.memory.size);
    if (!plan)
      return tl::make_unexpected(plan.error());
    snapshot_sending one(links_, rate_, author_, j.snapshot, j.memory, std::move(*plan),
                         now() + j.snapshot.within);
    if (const auto begun = one.begin(hello()); !begun)
      return begun;
    for (;;) {
      const auto seen = wakes();
      if (stopped())
        one.give_up({errc::closed, "copies are given up: this process ends"});
      while (const auto news = links_.next())
        one.hear(*news);
      if (!one.ended())
        one.step(now());
      if (one.ended())
        return *one.ended();
      if (one.wake_at())
        sleep(seen, *one.wake_at());
    }
  }

  messages::msg<messages::Hello> hello() {
    return author_.write<messages::Hello>({}, [this](messages::Hello::Builder b) {
      b.setJob(options_.job);
      b.setNode(options_.node);
      b.setRole(messages::Hello::Role::PEER);
    });
  }

  const std::shared_ptr<wake_point> wake_point_ = std::make_shared<wake_point>();
  const replication_source_options options_;

  // Under the lock.
  std::deque<job> waiting_;
  bool stop_ = false;

  // The thread's.
  messages::author author_;
  rate_limiter rate_;
  target_links links_;

  std::thread thread_;
};

replication_source::replication_source(std::shared_ptr<ports::transport> transport,
                                       replication_source_options options)
    : impl_(std::make_unique<impl>(std::move(transport), std::move(options))) {}
replication_source::~replication_source() = default;

void replication_source::give(const snapshot_to_copy& snapshot, ports::bytes_view memory,
                              std::function<void(result<void>)> done) {
  impl_->give(snapshot, memory, std::move(done));
}

} // namespace troupe::ckpt
