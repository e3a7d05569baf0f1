#include "runtime/os/checkpoint/snapshot_writer.hpp"

#include "ckpt/catalog/step_names.hpp"
#include "ckpt/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe::ckpt {

namespace {

tl::unexpected<error> too_many_places(const std::string& place) {
  return failure(errc::overloaded,
                 fmt::format("'{}' is not written: {} other directories are being written at once",
                             place, limits::checkpoint_places_max));
}

/// What the table says of a snapshot that is requested; nothing if it says what cannot be.
std::optional<persist_request> requested_in(const slots& words, const snapshot_here& snapshot) {
  const auto& to = words.destination(snapshot.slot);
  persist_request w;
  static_cast<snapshot_here&>(w) = snapshot;
  w.to = {text_in(to.place),
          text_in(to.directory),
          text_in(to.file),
          static_cast<framework>(std::min<std::uint32_t>(
              to.framework, static_cast<std::uint32_t>(framework::deepspeed))),
          to.shard,
          to.shards,
          {to.keep_latest, to.keep_every},
          patience_of(to.save_within_ms),
          to.resumed != 0 ? std::optional(resume_point{to.resumed - 1, to.resumed_after})
                          : std::nullopt};
  const bool sound = !w.to.place.empty() && w.to.place.front() == '/' &&
                     ports::valid_name(file_in(w.to.directory, w.to.file)) &&
                     w.to.shard < w.to.shards && w.to.shards <= limits::shards_max;
  return sound ? std::optional(std::move(w)) : std::nullopt;
}

} // namespace

snapshot_writer::snapshot_writer(std::shared_ptr<snapshot_watch> memory, node_name node)
    : memory_(std::move(memory)), node_(std::move(node)) {
  memory_->look_for(purpose::disk, [this](const slots& words, const snapshot_here& snapshot) {
    if (on_request_ && words.word(snapshot.slot).persist_requested)
      tell(words, snapshot);
  });
}

snapshot_writer::~snapshot_writer() {
  stop_ = true;
  memory_->leave(purpose::disk);
  places_.clear();
}

void snapshot_writer::tell(const slots& words, const snapshot_here& snapshot) {
  const auto request = requested_in(words, snapshot);
  if (!request)
    memory_->finalize(snapshot, failure(errc::invalid, "it was not said where it goes"),
                      purpose::disk);
  else if (told_.insert(request->key()).second)
    on_request_(*request);
}

void snapshot_writer::watch(std::function<void(const persist_request&)> on_request) {
  memory_->ask([this, on_request = std::move(on_request)] {
    on_request_ = on_request;
    told_.clear();
  });
}

void snapshot_writer::look(std::function<void()> done) {
  memory_->ask_after_look(std::move(done));
}

void snapshot_writer::write(const persist_request& snapshot,
                            std::function<void(result<ports::receipt>)> done) {
  memory_->ask([this, snapshot, done = std::move(done)] {
    auto* const there = at(snapshot.to.place);
    if (there == nullptr)
      return done(too_many_places(snapshot.to.place));
    there->writes.ask([this, snapshot, done](place_writer& to) { done(write_now(to, snapshot)); });
  });
}

result<ports::receipt> snapshot_writer::write_now(place_writer& to,
                                                  const persist_request& snapshot) {
  auto words = memory_->words(snapshot.local);
  if (!words.hold(snapshot.slot))
    return gone(snapshot);
  auto written = memory_->sealed(snapshot).and_then([&](const os::shared_memory& memory) {
    return to.write(snapshot, {reinterpret_cast<const std::byte*>(memory.data()), memory.bytes()},
                    stop_);
  });
  words.release(snapshot.slot);
  return written;
}

snapshot_writer::place_threads* snapshot_writer::at(const std::string& place) {
  if (const auto known = places_.find(place); known != places_.end())
    return known->second.get();
  for (auto it = places_.begin(); it != places_.end();)
    it = places_.size() >= limits::checkpoint_places_max && it->second->idle() ? places_.erase(it)
                                                                               : std::next(it);
  if (places_.size() >= limits::checkpoint_places_max)
    return nullptr;
  // Made in place: a thread does not move.
  const auto saved = std::make_shared<os::saved_again_by_threads>();
  return (places_[place] = std::unique_ptr<place_threads>(
              new place_threads{{place, node_, saved}, {place, node_, saved}}))
      .get();
}

void snapshot_writer::commit(const commit_order& order,
                             std::function<void(result<completed>)> done) {
  memory_->ask([this, order, done = std::move(done)] {
    auto* const there = at(order.to.place);
    if (there == nullptr)
      return done(too_many_places(order.to.place));
    there->commits.ask([order, done](place_writer& to) { done(to.commit(order)); });
  });
}

void snapshot_writer::retain(const retain_order& order) {
  memory_->ask([this, order] {
    if (auto* const there = at(order.to.place))
      there->commits.ask_later([order](place_writer& to) { to.retain(order); });
  });
}

void snapshot_writer::finalize(const persist_request& snapshot, const result<void>& how) {
  memory_->ask([this, snapshot, how] {
    memory_->finalize(snapshot, how, purpose::disk);
    told_.erase(snapshot.key());
  });
}

void snapshot_writer::request_newest() {
  memory_->ask([this] {
    for (local_rank local = 0; local < memory_->local_ranks(); ++local) {
      const auto all = memory_->words(local);
      if (!all.formatted())
        continue;
      for (const auto place : all.places()) {
        auto words = all.at(place);
        // Others may be a step behind what is newest here.
        const auto rollback_point = words.rollback_point();
        const auto slot = rollback_point ? rollback_point : words.newest();
        if (slot && !words.finalized(*slot, words.word(*slot).sequence))
          words.request_persist(*slot);
      }
    }
  });
}

} // namespace troupe::ckpt
