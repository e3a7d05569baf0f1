#include "runtime/os/checkpoint/snapshot_watch.hpp"

#include "ckpt/limits.hpp"
#include "ckpt/snapshot/snapshot_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

#include <unistd.h>

namespace troupe::ckpt {

tl::unexpected<error> gone(const snapshot_here& snapshot) {
  return failure(errc::invalid, fmt::format("the image of step {} of rank {} is gone",
                                            snapshot.step, snapshot.rank));
}

duration patience_of(std::uint64_t milliseconds) {
  const auto most = std::chrono::milliseconds(limits::save_within_max).count();
  return std::chrono::milliseconds(std::min(milliseconds, static_cast<std::uint64_t>(most)));
}

result<std::shared_ptr<snapshot_watch>>
snapshot_watch::open(const std::vector<std::vector<int>>& arenas) {
  std::vector<arena> opened;
  std::vector<os::wake_event> wake_events;
  for (const auto& descriptors : arenas) {
    auto memory = os::snapshot_memory::open(descriptors);
    if (!memory)
      return tl::make_unexpected(memory.error());
    opened.push_back({std::move(*memory)});
    opened.back().memory.words().readers_died();
    if (!wake_events.empty())
      continue;
    auto shared = os::wake_event::adopt(::dup(opened.back().memory.wake_event()));
    if (!shared)
      return tl::make_unexpected(shared.error());
    wake_events.push_back(std::move(*shared));
  }
  auto wake = os::wake_event::create();
  if (!wake)
    return tl::make_unexpected(wake.error());
  return std::shared_ptr<snapshot_watch>(
      new snapshot_watch(std::move(opened), std::move(wake_events), std::move(*wake)));
}

snapshot_watch::snapshot_watch(std::vector<arena> arenas, std::vector<os::wake_event> wake_events,
                               os::wake_event wake)
    : arenas_(std::move(arenas)), wake_events_(std::move(wake_events)), wake_(std::move(wake)),
      thread_([this] { run(); }) {}

snapshot_watch::~snapshot_watch() {
  stop_ = true;
  wake_.signal();
  thread_.join();
}

void snapshot_watch::ask(std::function<void()> work) {
  {
    const std::lock_guard held(lock_);
    work_.push_back(std::move(work));
  }
  wake_.signal();
}

void snapshot_watch::ask_after_look(std::function<void()> work) {
  ask([this, work = std::move(work)] {
    look();
    work();
  });
}

void snapshot_watch::run() {
  while (!stop_) {
    look();
    std::function<void()> next;
    {
      const std::lock_guard held(lock_);
      if (!work_.empty()) {
        next = std::move(work_.front());
        work_.pop_front();
      }
    }
    if (next)
      next();
    else if (wake_events_.empty())
      os::wake_event::wait({&wake_});
    else
      os::wake_event::wait({&wake_, &wake_events_.front()});
  }
}

void snapshot_watch::look() {
  for (local_rank local = 0; local < arenas_.size(); ++local) {
    const auto words = arenas_[local].memory.words();
    if (!words.formatted())
      continue;
    for (const auto slot : words.oldest_first()) {
      const auto word = words.word(slot);
      if (word.state != slot_state::ready)
        continue;
      const auto& says = words.snapshot(slot);
      const snapshot_here here{
          local,     slot,      word.sequence,   says.step, generation{says.generation},
          says.save, says.rank, says.world_size, says.bytes};
      for (const auto& [what, with] : lookers_)
        with(words, here);
    }
  }
}

void snapshot_watch::look_for(purpose what, looker with) {
  ask([this, what, with = std::move(with)] { lookers_.insert_or_assign(what, with); });
}

void snapshot_watch::leave(purpose what) {
  std::promise<void> left;
  ask([this, what, &left] {
    lookers_.erase(what);
    left.set_value();
  });
  left.get_future().wait();
}

result<os::shared_memory> snapshot_watch::sealed(const snapshot_here& snapshot) {
  auto& there = arenas_.at(snapshot.local);
  auto words = there.memory.words();
  auto memory = there.memory.map(snapshot.slot);
  if (!memory)
    return memory;
  if (words.word(snapshot.slot).sequence != snapshot.sequence || memory->bytes() != snapshot.bytes)
    return failure(errc::invalid, fmt::format("the image of step {} of rank {} is another's now",
                                              snapshot.step, snapshot.rank));
  const std::lock_guard lock(*there.sealing);
  if (!words.word(snapshot.slot).sealed) {
    if (const auto done = seal_snapshot(memory->data(), memory->bytes()); !done)
      return tl::make_unexpected(done.error());
    words.mark_sealed(snapshot.slot);
  }
  return memory;
}

void snapshot_watch::finalize(const snapshot_here& snapshot, const result<void>& how,
                              purpose what) {
  auto words = arenas_.at(snapshot.local).memory.words();
  words.finalize(snapshot.slot, snapshot.sequence, {how.has_value(), how ? "" : how.error().what},
                 what);
  os::wake_all(words.outcomes_told());
}

} // namespace troupe::ckpt
