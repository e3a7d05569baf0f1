#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// Streams and memory of a device that is not there, as CUDA orders them. Nothing here knows of
// tensors or of Python, and no caller may hold Python's lock where it says "waits".
namespace fake {

constexpr int device_count = 2;
constexpr int streams_per_device = 33; // the default stream and 32 more, handed out in turn
constexpr std::chrono::seconds patience{30};
constexpr int freed_byte = 0xDD;

// One recording of an event; recording the event again makes another.
struct mark {
  bool passed = false;
  std::string failure; // of a copy before it in its stream
};

struct stream_name {
  int device = 0;
  int number = 0; // 0 is the default stream
};

struct queue;

struct block {
  void* bytes = nullptr;
  std::size_t size = 0;
  int device = 0;
  std::set<queue*> streams; // the one it was allocated on, and those of record_stream
  std::size_t releases_queued = 0;
};

struct entry {
  std::function<void()> copy;
  std::string failure;           // what the copy ends with instead of being made
  std::shared_ptr<mark> awaited; // the stream goes on when this has been passed
  std::shared_ptr<mark> recorded;
  block* released = nullptr;
};

struct queue {
  stream_name name;
  std::deque<entry> entries;
  std::uint64_t pushed = 0;
  std::uint64_t finished = 0;
  bool started = false;
  std::string failure; // of a copy, until the next mark or the next waiter has been told

  bool idle() const { return pushed == finished; }
};

class device_queues {
 public:
  // Never destroyed: the threads outlive main.
  static device_queues& all() {
    static auto* const one = new device_queues;
    return *one;
  }

  stream_name next_stream(int device) {
    const std::lock_guard lock(mutex_);
    int& last = handed_out_.at(device);
    last = last % (streams_per_device - 1) + 1;
    return {device, last};
  }

  void copy(stream_name stream, std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    entry added;
    added.copy = std::move(work);
    added.failure = std::exchange(next_failure_, {});
    push(at(stream), std::move(added));
  }

  std::shared_ptr<mark> record(stream_name stream) {
    const std::lock_guard lock(mutex_);
    auto made = std::make_shared<mark>();
    queue& on = at(stream);
    entry added;
    added.recorded = made;
    push(on, std::move(added));
    return made;
  }

  void block_until(stream_name stream, std::shared_ptr<mark> awaited) {
    const std::lock_guard lock(mutex_);
    if (awaited->passed)
      return;
    entry added;
    added.awaited = std::move(awaited);
    push(at(stream), std::move(added));
  }

  bool passed(const mark& asked) {
    const std::lock_guard lock(mutex_);
    if (!asked.failure.empty())
      throw std::runtime_error(asked.failure);
    return asked.passed;
  }

  // Waits.
  void synchronize(const mark& asked) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, patience, [&asked] { return asked.passed; }))
      throw std::runtime_error("fake device: an event was not reached; its stream is held");
    if (!asked.failure.empty())
      throw std::runtime_error(asked.failure);
  }

  bool idle(stream_name stream) {
    const std::lock_guard lock(mutex_);
    return at(stream).idle();
  }

  // Waits for what was in the stream when it was called.
  void drain(stream_name stream) {
    std::unique_lock lock(mutex_);
    queue& of = at(stream);
    const std::uint64_t until = of.pushed;
    ++waiting_.at(stream.device);
    changed_.notify_all();
    const bool ended =
        changed_.wait_for(lock, patience, [&of, until] { return of.finished >= until; });
    --waiting_.at(stream.device);
    if (!ended)
      throw std::runtime_error("fake device: stream " + std::to_string(stream.number) +
                               " does not end; it is held or waits for one that is");
    if (!of.failure.empty())
      throw std::runtime_error(std::exchange(of.failure, {}));
  }

  // Waits until a thread waits for a stream of the device.
  void until_waited_for(int device) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, patience, [this, device] { return waiting_.at(device) != 0; }))
      throw std::runtime_error("fake device: no thread waits for a stream of it");
  }

  // Waits.
  void drain(int device) {
    for (int number = 0; number < streams_per_device; ++number)
      drain({device, number});
  }

  void hold(int device, bool held) {
    const std::lock_guard lock(mutex_);
    held_.at(device) = held;
    changed_.notify_all();
  }

  std::int64_t entries(int device) {
    const std::lock_guard lock(mutex_);
    std::int64_t sum = 0;
    for (const queue& each : queues_.at(device))
      sum += static_cast<std::int64_t>(each.pushed - each.finished);
    return sum;
  }

  void fail_next_copy() {
    const std::lock_guard lock(mutex_);
    next_failure_ = "fake device error: an illegal memory access was encountered";
  }

  block* allocate(stream_name stream, std::size_t size) {
    void* bytes = nullptr;
    if (::posix_memalign(&bytes, 64, size) != 0)
      throw std::bad_alloc();
    const std::lock_guard lock(mutex_);
    return new block{bytes, size, stream.device, {&at(stream)}};
  }

  void used_on(block& used, stream_name stream) {
    const std::lock_guard lock(mutex_);
    used.streams.insert(&at(stream));
  }

  // Freed when the streams that it is known to be used on are past this point: at once where they
  // are idle. A copy on any other stream finds freed_byte.
  void release(block* freed) {
    const std::lock_guard lock(mutex_);
    for (queue* on : freed->streams)
      if (!on->idle()) {
        ++freed->releases_queued;
        entry added;
        added.released = freed;
        push(*on, std::move(added));
      }
    if (freed->releases_queued == 0)
      bury(freed);
  }

 private:
  device_queues() {
    for (int device = 0; device < device_count; ++device)
      for (int number = 0; number < streams_per_device; ++number)
        queues_.at(device).at(number).name = {device, number};
  }

  queue& at(stream_name stream) { return queues_.at(stream.device).at(stream.number); }

  void push(queue& on, entry added) {
    if (!std::exchange(on.started, true))
      std::thread([this, &on] { run(on); }).detach();
    on.entries.push_back(std::move(added));
    ++on.pushed;
    changed_.notify_all();
  }

  bool may_go_on(const queue& one) const {
    return !one.entries.empty() && (one.name.number == 0 || !held_.at(one.name.device));
  }

  void run(queue& own) {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this, &own] { return may_go_on(own); });
      entry next = std::move(own.entries.front());
      own.entries.pop_front();
      if (next.awaited)
        changed_.wait(lock, [&next] { return next.awaited->passed; });
      if (next.copy) {
        // What the copy keeps may take Python's lock or this one when it goes.
        lock.unlock();
        std::string failure = made(next);
        lock.lock();
        if (!failure.empty())
          own.failure = std::move(failure);
      }
      if (next.recorded) {
        next.recorded->failure = std::exchange(own.failure, {});
        next.recorded->passed = true;
      }
      ++own.finished;
      if (next.released != nullptr && --next.released->releases_queued == 0)
        bury(next.released);
      dig_up();
      changed_.notify_all();
    }
  }

  static std::string made(entry& one) {
    std::string failure = std::move(one.failure);
    try {
      if (failure.empty())
        one.copy();
    } catch (const std::exception& error) {
      failure = error.what();
    }
    one.copy = nullptr;
    return failure;
  }

  // The bytes stay readable while any copy is queued, so that one that comes too late finds the
  // same bytes each time rather than a crash.
  void bury(block* freed) {
    std::memset(freed->bytes, freed_byte, freed->size);
    graveyard_.push_back(freed);
    dig_up();
  }

  void dig_up() {
    if (graveyard_.empty())
      return;
    for (const auto& device : queues_)
      for (const queue& each : device)
        if (!each.idle())
          return;
    for (block* freed : graveyard_) {
      std::free(freed->bytes);
      delete freed;
    }
    graveyard_.clear();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<std::array<queue, streams_per_device>, device_count> queues_;
  std::array<bool, device_count> held_{};
  std::array<int, device_count> handed_out_{};
  std::array<int, device_count> waiting_{}; // threads that a stream's end is awaited by
  std::string next_failure_;
  std::vector<block*> graveyard_;
};

} // namespace fake
