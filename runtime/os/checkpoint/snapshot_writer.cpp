#include "runtime/os/checkpoint/snapshot_writer.hpp"

#include "ckpt/catalog/step_names.hpp"
#include "ckpt/erasure/stripes.hpp"
#include "ckpt/limits.hpp"
#include "ckpt/snapshot/archive.hpp"
#include "runtime/base/invariant.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <unistd.h>

namespace troupe::ckpt {

namespace {

template<std::size_t Size>
std::string text_of(const std::array<char, Size>& from) {
  return {from.begin(), std::find(from.begin(), from.end(), '\0')};
}

tl::unexpected<error> gone(const snapshot_here& snapshot) {
  return failure(errc::invalid, fmt::format("the image of step {} of rank {} is gone",
                                            snapshot.step, snapshot.rank));
}

tl::unexpected<error> too_many_places(const std::string& place) {
  return failure(errc::overloaded,
                 fmt::format("'{}' is not written: {} other directories are being written at once",
                             place, limits::checkpoint_places_max));
}

ports::bytes_view view_of(const os::shared_memory& memory) {
  return {reinterpret_cast<const std::byte*>(memory.data()), memory.bytes()};
}

/// How long a shard's process says that the others may take, within reason.
duration patience_of(std::uint64_t milliseconds) {
  const auto most = std::chrono::milliseconds(limits::save_within_max).count();
  return std::chrono::milliseconds(std::min(milliseconds, static_cast<std::uint64_t>(most)));
}

/// And its waiters hear.
void finalize_in(slots& words, const snapshot_here& snapshot, const result<void>& how,
                 purpose what) {
  words.finalize(snapshot.slot, snapshot.sequence, {how.has_value(), how ? "" : how.error().what},
                 what);
  os::wake_all(words.outcomes_told());
}

snapshot_here here(const slots& words, std::size_t slot, local_rank local) {
  const auto& says = words.snapshot(slot);
  return {local,     slot,      words.word(slot).sequence, says.step, generation{says.generation},
          says.save, says.rank, says.world_size,           says.bytes};
}

/// What the table says of a slot's snapshot that is requested; nothing if it says what cannot be.
std::optional<persist_request> requested_in(const slots& words, std::size_t slot,
                                            local_rank local) {
  const auto& to = words.destination(slot);
  persist_request w;
  static_cast<snapshot_here&>(w) = here(words, slot, local);
  w.to = {text_of(to.place),
          text_of(to.directory),
          text_of(to.file),
          static_cast<framework>(std::min<std::uint32_t>(
              to.framework, static_cast<std::uint32_t>(framework::deepspeed))),
          to.shard,
          to.shards,
          {to.keep_latest, to.keep_every},
          patience_of(to.save_within_ms)};
  const bool sound = !w.to.place.empty() && w.to.place.front() == '/' &&
                     ports::valid_name(file_in(w.to.directory, w.to.file)) &&
                     w.to.shard < w.to.shards && w.to.shards <= limits::shards_max;
  return sound ? std::optional(std::move(w)) : std::nullopt;
}

/// The same for one of which copies are requested.
std::optional<snapshot_to_copy> to_copy_in(const slots& words, std::size_t slot, local_rank local) {
  const auto& by = words.group(slot);
  snapshot_to_copy w;
  static_cast<snapshot_here&>(w) = here(words, slot, local);
  if (by.members > slot_group::members_max || by.me >= by.members ||
      !check(code{by.members, by.parity}))
    return std::nullopt;
  for (std::size_t i = 0; i < by.members; ++i)
    w.by.members.push_back({by.ranks[i], text_of(by.addresses[i])});
  w.by.parity = by.parity;
  w.by.me = by.me;
  w.within = patience_of(by.within_ms);
  if (const auto kept = words.replica_base())
    w.whole = held_step{generation{words.snapshot(*kept).generation}, words.snapshot(*kept).step};
  return w;
}

} // namespace

result<std::shared_ptr<snapshot_writer>>
snapshot_writer::open(const std::vector<std::vector<int>>& arenas, node_name node,
                      replicator replicate) {
  std::vector<arena> mapped;
  std::vector<os::wake_event> wake_events;
  for (const auto& descriptors : arenas) {
    invariant(descriptors.size() == arena_descriptors,
              "an arena is a table, slots, a wake-up event");
    auto table = os::shared_memory::share(descriptors.front());
    if (!table)
      return tl::make_unexpected(table.error());
    if (table->bytes() < sizeof(slot_table))
      return failure(errc::invalid,
                     fmt::format("descriptor {} holds no table of images", descriptors.front()));
    auto& one = mapped.emplace_back();
    one.table = std::move(*table);
    std::copy_n(descriptors.begin() + 1, one.memory.size(), one.memory.begin());
    one.words().readers_died();
    if (!wake_events.empty())
      continue;
    auto shared = os::wake_event::adopt(::dup(descriptors.back()));
    if (!shared)
      return tl::make_unexpected(shared.error());
    wake_events.push_back(std::move(*shared));
  }
  auto wake = os::wake_event::create();
  if (!wake)
    return tl::make_unexpected(wake.error());
  return std::shared_ptr<snapshot_writer>(
      new snapshot_writer(std::move(mapped), std::move(wake_events), std::move(*wake),
                          std::move(node), std::move(replicate)));
}

snapshot_writer::snapshot_writer(std::vector<arena> arenas, std::vector<os::wake_event> wake_events,
                                 os::wake_event wake, node_name node, replicator replicate)
    : arenas_(std::move(arenas)), wake_events_(std::move(wake_events)), wake_(std::move(wake)),
      node_(std::move(node)), replicate_(std::move(replicate)), thread_([this] { run(); }) {}

snapshot_writer::~snapshot_writer() {
  stop_ = true;
  wake_.signal();
  thread_.join();
  places_.clear();
}

void snapshot_writer::ask(std::function<void()> work) {
  {
    const std::lock_guard held(lock_);
    work_.push_back(std::move(work));
  }
  wake_.signal();
}

void snapshot_writer::run() {
  while (!stop_) {
    tell_persist_request();
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

void snapshot_writer::tell_persist_request() {
  for (local_rank local = 0; local < arenas_.size(); ++local) {
    auto words = arenas_[local].words();
    if (!words.formatted())
      continue;
    // The older first: it has waited longer.
    for (const auto slot : words.oldest_first()) {
      const auto word = words.word(slot);
      if (word.state != slot_state::ready)
        continue;
      if (word.persist_requested && on_request_)
        tell_persist_requests_in(words, slot, local);
      if (word.copied && on_copy_request_)
        tell_copy_requests_in(words, slot, local);
    }
  }
}

void snapshot_writer::tell_persist_requests_in(slots& words, std::size_t slot, local_rank local) {
  const auto snapshot = requested_in(words, slot, local);
  if (!snapshot)
    finalize_in(words, {local, slot, words.word(slot).sequence},
                failure(errc::invalid, "it was not said where it goes"), purpose::disk);
  else if (told_.insert(id_of(*snapshot)).second)
    on_request_(*snapshot);
}

void snapshot_writer::tell_copy_requests_in(slots& words, std::size_t slot, local_rank local) {
  const auto snapshot = to_copy_in(words, slot, local);
  if (!snapshot)
    finalize_in(words, {local, slot, words.word(slot).sequence},
                failure(errc::invalid, "it was not said which nodes hold its pieces"),
                purpose::copies);
  else if (told_copies_.insert(id_of(*snapshot)).second)
    on_copy_request_(*snapshot);
}

void snapshot_writer::watch(std::function<void(const persist_request&)> on_request) {
  ask([this, on_request = std::move(on_request)] {
    on_request_ = on_request;
    told_.clear();
  });
}

void snapshot_writer::watch_copies(std::function<void(const snapshot_to_copy&)> on_request) {
  ask([this, on_request = std::move(on_request)] {
    on_copy_request_ = on_request;
    told_copies_.clear();
  });
}

void snapshot_writer::look(std::function<void()> done) {
  ask([this, done = std::move(done)] {
    tell_persist_request();
    done();
  });
}

void snapshot_writer::write(const persist_request& snapshot,
                            std::function<void(result<ports::receipt>)> done) {
  ask([this, snapshot, done = std::move(done)] {
    auto* const there = at(snapshot.to.place);
    if (there == nullptr)
      return done(too_many_places(snapshot.to.place));
    there->writes.ask([this, snapshot, done](place_writer& to) { done(write_now(to, snapshot)); });
  });
}

result<os::shared_memory> snapshot_writer::mapped(const snapshot_here& snapshot) {
  auto words = arenas_.at(snapshot.local).words();
  auto memory = os::shared_memory::share(arenas_[snapshot.local].memory.at(snapshot.slot));
  if (!memory)
    return memory;
  if (words.word(snapshot.slot).sequence != snapshot.sequence || memory->bytes() != snapshot.bytes)
    return failure(errc::invalid, fmt::format("the image of step {} of rank {} is another's now",
                                              snapshot.step, snapshot.rank));
  if (!words.word(snapshot.slot).sealed) {
    if (const auto sealed = seal(memory->data(), memory->bytes()); !sealed)
      return tl::make_unexpected(sealed.error());
    words.mark_sealed(snapshot.slot);
  }
  return memory;
}

result<ports::receipt> snapshot_writer::write_now(place_writer& to,
                                                  const persist_request& snapshot) {
  auto words = arenas_.at(snapshot.local).words();
  if (!words.hold(snapshot.slot))
    return gone(snapshot);
  auto written = mapped(snapshot).and_then(
      [&](const os::shared_memory& memory) { return to.write(snapshot, view_of(memory), stop_); });
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
  return (places_[place] =
              std::unique_ptr<place_threads>(new place_threads{{place, node_}, {place, node_}}))
      .get();
}

void snapshot_writer::commit(const commit_order& order,
                             std::function<void(result<completed>)> done) {
  ask([this, order, done = std::move(done)] {
    auto* const there = at(order.to.place);
    if (there == nullptr)
      return done(too_many_places(order.to.place));
    there->commits.ask([there, order, done](place_writer& to) {
      const auto how = to.commit(order);
      done(how);
      if (how)
        there->commits.ask_later([order](place_writer& then) { then.retain(order); });
    });
  });
}

void snapshot_writer::finalize(const persist_request& snapshot, const result<void>& how) {
  ask([this, snapshot, how] {
    auto words = arenas_.at(snapshot.local).words();
    finalize_in(words, snapshot, how, purpose::disk);
    told_.erase(id_of(snapshot));
  });
}

void snapshot_writer::copy(const snapshot_to_copy& snapshot,
                           std::function<void(result<void>)> done) {
  ask([this, snapshot, done = std::move(done)] {
    const auto known = copies_.find(id_of(snapshot));
    if (known != copies_.end()) {
      known->second.done.push_back(done);
      return;
    }
    copies_[id_of(snapshot)].done = {done};
    copy_now(snapshot);
  });
}

void snapshot_writer::copy_now(const snapshot_to_copy& snapshot) {
  if (!replicate_)
    return copied(snapshot, failure(errc::refused, "this node does not give copies to others"));
  auto words = arenas_.at(snapshot.local).words();
  if (!words.hold(snapshot.slot))
    return copied(snapshot, gone(snapshot));
  auto memory = mapped(snapshot);
  if (!memory) {
    words.release(snapshot.slot);
    return copied(snapshot, tl::make_unexpected(memory.error()));
  }
  auto& kept = copies_[id_of(snapshot)].memory;
  kept = std::move(*memory);
  replicate_(snapshot, view_of(kept), [this, snapshot](const result<void>& how) {
    ask([this, snapshot, how] {
      arenas_.at(snapshot.local).words().release(snapshot.slot);
      copied(snapshot, how);
    });
  });
}

void snapshot_writer::copied(const snapshot_to_copy& snapshot, const result<void>& how) {
  const auto ended = copies_.extract(id_of(snapshot));
  for (const auto& done : ended.mapped().done)
    done(how);
}

void snapshot_writer::finalize_copy(const snapshot_to_copy& snapshot, const result<void>& how) {
  ask([this, snapshot, how] {
    auto words = arenas_.at(snapshot.local).words();
    finalize_in(words, snapshot, how, purpose::copies);
    told_copies_.erase(id_of(snapshot));
  });
}

void snapshot_writer::request_newest() {
  ask([this] {
    for (auto& a : arenas_) {
      auto words = a.words();
      if (!words.formatted())
        continue;
      // Others may be a step behind what is newest here.
      const auto rollback_point = words.rollback_point();
      const auto slot = rollback_point ? rollback_point : words.newest();
      if (slot && !words.finalized(*slot, words.word(*slot).sequence))
        words.request_persist(*slot);
    }
  });
}

} // namespace troupe::ckpt
