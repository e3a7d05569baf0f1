#include "runtime/os/copies/replication_source.hpp"

#include "ckpt/limits.hpp"
#include "runtime/os/copies/snapshot_sending.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>

namespace troupe::ckpt {

class replication_source::impl {
 public:
  impl(std::shared_ptr<ports::bulk_links> bulk, const node_name& node)
      : bulk_(std::move(bulk)), author_(node + "/replicator"), thread_([this] { run(); }) {}

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

  /// Of a local rank, whose snapshots are given one after the other. A snapshot is held only when
  /// others have given theirs, and each node's local ranks save in an order of their own: if one
  /// waited for another, nodes would wait for each other in a circle.
  struct lane {
    lane(std::shared_ptr<ports::bulk_links> bulk, std::shared_ptr<wake_point> thread)
        : links(std::move(bulk), std::move(thread)) {}

    target_links links;
    std::optional<job> now;
    std::optional<snapshot_sending> sending; ///< of `now`
    instant idle_since;
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

  bool is_free(local_rank local) const {
    const auto at = lanes_.find(local);
    return at == lanes_.end() || !at->second.now;
  }

  /// The first whose local rank has nothing on its way.
  std::optional<job> next_job() {
    const std::lock_guard held(wake_point_->lock);
    const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                    [this](const job& j) { return is_free(j.snapshot.local); });
    if (found == waiting_.end())
      return std::nullopt;
    auto next = std::move(*found);
    waiting_.erase(found);
    return next;
  }

  void run() {
    for (;;) {
      const auto seen = wakes();
      const auto stops = stopped();
      while (auto next = next_job())
        begin(std::move(*next));
      auto until = instant::max();
      bool all_free = true;
      for (auto& [local, one] : lanes_) {
        until = std::min(until, one.now ? go_on(one) : rest(one));
        all_free = all_free && !one.now;
      }
      // What waited until then has had its turn.
      if (stops && all_free && until != instant{})
        return;
      // A wait for what is past would arm the kernel's timer all the same, at a cost.
      if (until > now())
        sleep(seen, until);
    }
  }

  void begin(job j) {
    auto& one = lanes_.try_emplace(j.snapshot.local, bulk_, wake_point_).first->second;
    one.now = std::move(j);
    const auto& given = one.now->snapshot;
    auto plan = sending_plan::make(given.by, one.now->memory.size);
    if (!plan)
      return end(one, tl::make_unexpected(plan.error()));
    one.sending.emplace(one.links, *bulk_, author_, given, one.now->memory, std::move(*plan),
                        now() + given.within);
    if (const auto begun = one.sending->begin(); !begun)
      end(one, begun);
  }

  /// A little of what there is to do; and when there is more.
  instant go_on(lane& one) {
    auto& sending = *one.sending;
    if (stopped())
      sending.give_up({errc::closed, "copies are given up: this process ends"});
    while (const auto news = one.links.next())
      sending.hear(*news);
    if (!sending.ended())
      sending.step(now());
    if (!sending.ended())
      return sending.wake_at().value_or(instant{});
    end(one, *sending.ended());
    return instant{};
  }

  void end(lane& one, result<void> how) {
    one.idle_since = now();
    one.sending.reset();
    const auto ended = std::move(one.now);
    one.now.reset();
    ended->done(how);
  }

  /// No answer is due now; this only notices targets that have gone, for the next snapshot.
  instant rest(lane& one) {
    while (one.links.next()) {
    }
    const auto until = one.idle_since + limits::copy_links_idle;
    if (now() >= until)
      one.links.drop_all_but({}, "there is nothing to give");
    return one.links.empty() ? instant::max() : until;
  }

  const std::shared_ptr<wake_point> wake_point_ = std::make_shared<wake_point>();
  const std::shared_ptr<ports::bulk_links> bulk_;

  // Under the lock.
  std::deque<job> waiting_;
  bool stop_ = false;

  // The thread's.
  messages::author author_;
  std::map<local_rank, lane> lanes_;

  std::thread thread_;
};

replication_source::replication_source(std::shared_ptr<ports::bulk_links> bulk,
                                       const node_name& node)
    : impl_(std::make_unique<impl>(std::move(bulk), node)) {}
replication_source::~replication_source() = default;

void replication_source::give(const snapshot_to_copy& snapshot, ports::bytes_view memory,
                              std::function<void(result<void>)> done) {
  impl_->give(snapshot, memory, std::move(done));
}

} // namespace troupe::ckpt
