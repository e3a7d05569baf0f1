#include "ckpt/copies/image_giver.hpp"

#include "ckpt/copies/image_giving.hpp"
#include "ckpt/limits.hpp"

#include <fmt/format.h>

#include <chrono>
#include <deque>
#include <optional>
#include <thread>
#include <utility>

namespace troupe::ckpt {

class image_giver::impl {
 public:
  impl(std::shared_ptr<ports::transport> transport, giver_options options)
      : options_(std::move(options)), author_(options_.node + "/checkpoint_saver"),
        rate_(options_.bytes_per_second, limits::copy_burst), links_(std::move(transport), doze_),
        thread_([this] { run(); }) {}

  ~impl() {
    {
      const std::lock_guard held(doze_->lock);
      stop_ = true;
    }
    doze_->wake();
    thread_.join();
  }

  void give(const image_to_copy& image, ports::bytes_view memory,
            std::function<void(result<void>)> done) {
    {
      const std::lock_guard held(doze_->lock);
      if (waiting_.size() < limits::images_wanted_max) {
        waiting_.push_back({image, memory, std::move(done)});
        done = nullptr;
      }
    }
    doze_->wake();
    if (done)
      done(failure(errc::overloaded, fmt::format("copies of {} images are waited for already",
                                                 limits::images_wanted_max)));
  }

 private:
  struct job {
    image_to_copy image;
    ports::bytes_view memory;
    std::function<void(result<void>)> done;
  };

  static instant now() { return std::chrono::steady_clock::now(); }

  /// Sleeps until something happens that was not yet when `seen` rings had been heard, or then.
  void sleep(std::uint64_t seen, instant until) {
    std::unique_lock held(doze_->lock);
    doze_->rung.wait_until(held, until, [this, seen] { return doze_->rings != seen; });
  }

  std::uint64_t rings() const {
    const std::lock_guard held(doze_->lock);
    return doze_->rings;
  }

  bool stopped() const {
    const std::lock_guard held(doze_->lock);
    return stop_;
  }

  std::optional<job> next_job() {
    const std::lock_guard held(doze_->lock);
    if (waiting_.empty())
      return std::nullopt;
    auto next = std::move(waiting_.front());
    waiting_.pop_front();
    return next;
  }

  void run() {
    auto idle_since = now();
    for (;;) {
      const auto seen = rings();
      if (const auto next = next_job()) {
        next->done(given(*next));
        idle_since = now();
        continue;
      }
      if (stopped())
        return;
      // No answer is due now; this only notices holders that have gone, for the next image.
      while (links_.next()) {
      }
      if (now() >= idle_since + limits::copy_links_idle)
        links_.drop_all_but({}, "there is nothing to give");
      sleep(seen, links_.empty() ? instant::max() : idle_since + limits::copy_links_idle);
    }
  }

  result<void> given(const job& j) {
    auto plan = giving_plan::make(j.image.by, j.memory.size);
    if (!plan)
      return tl::make_unexpected(plan.error());
    image_giving one(links_, rate_, author_, j.image, j.memory, std::move(*plan),
                     now() + j.image.within);
    if (const auto begun = one.begin(hello()); !begun)
      return begun;
    for (;;) {
      const auto seen = rings();
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

  const std::shared_ptr<doze> doze_ = std::make_shared<doze>();
  const giver_options options_;

  // Under the lock.
  std::deque<job> waiting_;
  bool stop_ = false;

  // The thread's.
  messages::author author_;
  rate_limiter rate_;
  holder_links links_;

  std::thread thread_;
};

image_giver::image_giver(std::shared_ptr<ports::transport> transport, giver_options options)
    : impl_(std::make_unique<impl>(std::move(transport), std::move(options))) {}
image_giver::~image_giver() = default;

void image_giver::give(const image_to_copy& image, ports::bytes_view memory,
                       std::function<void(result<void>)> done) {
  impl_->give(image, memory, std::move(done));
}

} // namespace troupe::ckpt
