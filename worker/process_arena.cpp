#include "worker/process_arena.hpp"

#include "worker/held_in.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::ckpt {

namespace {

/// On a device: the caller has it copied.
bool is_elsewhere(const bytes_at& storage) {
  return storage.data == nullptr && storage.bytes != 0;
}

} // namespace

result<std::unique_ptr<process_arena>> process_arena::open(std::shared_ptr<arena_memory> memory,
                                                           std::size_t snapshots, unsigned threads,
                                                           place_id id, const std::string& place) {
  if (snapshots < 2 || snapshots > slots::snapshots_max)
    return failure(errc::invalid, fmt::format("{} images at once: there can be 2 to {}", snapshots,
                                              slots::snapshots_max));
  auto opened = std::unique_ptr<process_arena>(
      new process_arena(std::move(memory), snapshots, threads, id, place));
  const std::lock_guard lock(opened->all_->mutex);
  opened->all_->enter(id, snapshots);
  return opened;
}

std::unique_ptr<process_arena> process_arena::view(std::shared_ptr<arena_memory> of_another,
                                                   place_id id) {
  return std::unique_ptr<process_arena>(
      new process_arena(std::move(of_another), slots::snapshots_max, 1, id, ""));
}

process_arena::process_arena(std::shared_ptr<arena_memory> memory, std::size_t snapshots,
                             unsigned threads, place_id id, const std::string& place)
    : all_(std::move(memory)), place_(place), slots_(all_->words_of(snapshots, id)),
      copier_(threads) {}

process_arena::~process_arena() {
  background_.reset();
  if (is_anothers())
    return;
  if (begun_)
    abandon(*begun_);
  const std::lock_guard lock(all_->mutex);
  all_->memory.stop_filling();
  all_->leave(slots_.place());
}

result<void> process_arena::copy_on_write() {
  if (background_)
    return {};
  auto watch = os::write_watch::open();
  if (!watch)
    return tl::make_unexpected(watch.error());
  background_ = std::make_unique<background_copy>(std::move(*watch));
  return {};
}

void process_arena::pin_by(os::pinning how) {
  const std::lock_guard lock(all_->mutex);
  all_->memory.pin_by(std::move(how));
}

result<void> process_arena::prepare(std::uint64_t bytes, std::vector<bytes_at> storages) {
  if (is_anothers())
    return failure(errc::invalid, "this memory is another process's");
  if (background_)
    background_->wait();
  const std::lock_guard lock(all_->mutex);
  all_->memory.stop_filling();
  all_->release_unmapped();
  // What protecting a state costs is counted in pages: the fewer the better.
  return all_->share->prepare(slots_.place(), bytes,
                              background_ ? std::move(storages) : std::vector<bytes_at>{});
}

result<void> process_arena::prepared() {
  const std::lock_guard lock(all_->mutex);
  return all_->memory.filled();
}

std::size_t process_arena::snapshots() const {
  const std::lock_guard lock(all_->mutex);
  const auto place = slots_.place();
  return all_->share && all_->share->decided(place) ? all_->share->kept(place) : 0;
}

result<std::size_t> process_arena::begin(std::uint64_t bytes) {
  last_saved_.reset();
  if (is_anothers())
    return failure(errc::invalid, "this memory is another process's");
  std::unique_lock lock(all_->mutex);
  const auto slot = all_->begin(slots_, bytes, lock);
  if (slot)
    begun_ = *slot;
  return slot;
}

void process_arena::abandon(std::size_t slot) {
  const std::lock_guard lock(all_->mutex);
  begun_.reset();
  slots_.abandon(slot);
  all_->share->touched();
}

result<const snapshot_layout*> process_arena::save(const order& o, const state_parts& parts,
                                                   places_left* left) {
  if (auto before = saved(); !before)
    return tl::make_unexpected(before.error());
  const auto some_left = std::any_of(parts.storages.begin(), parts.storages.end(), is_elsewhere);
  if (some_left && left == nullptr)
    return failure(errc::invalid, "a storage has no address");
  const auto found = layout_.of(parts.shape);
  if (!found)
    return found;
  const auto& layout = **found;
  const auto slot = begin(layout.bytes());
  if (!slot)
    return tl::make_unexpected(slot.error());
  if (some_left) {
    // It may be pinning it; it has nearly ended, or the copy waits less.
    const std::lock_guard lock(all_->mutex);
    (void)all_->memory.filled();
    all_->memory.pin(*slot, layout.bytes());
  }
  lay_out(*slot, layout, parts, left);
  last_saved_ = *slot;
  last_bytes_ = layout.bytes();
  const bool open = parts.shape.last_file_room != 0;
  if (open)
    open_ = {*slot, layout.bytes(), *layout.list()};
  parts_.begin(some_left, open, [this, slot = *slot, o](const result<void>& arrived) {
    if (!arrived) {
      abandon(slot);
      return arrived;
    }
    auto made = o;
    made.what.bytes = last_bytes_;
    return finish(slot, made);
  });
  copy(pieces_);
  if (!some_left && !open && !background_)
    if (auto done = saved(); !done)
      return tl::make_unexpected(done.error());
  return &layout;
}

/// Writes what is the format's own, and finds what is to be copied where.
void process_arena::lay_out(std::size_t slot, const snapshot_layout& layout,
                            const state_parts& parts, places_left* left) {
  auto* const snapshot = memory(slot);
  layout.write_frame(snapshot);
  pieces_.clear();
  pieces_.reserve(parts.heads.size() + parts.storages.size());
  for (std::size_t i = 0; i < parts.heads.size(); ++i)
    pieces_.push_back({snapshot + layout.head_at(i), parts.heads[i].data, parts.heads[i].bytes});
  if (left != nullptr)
    *left = {std::vector<char*>(parts.storages.size()), snapshot + all_->memory.pinned_bytes(slot)};
  for (std::size_t i = 0; i < parts.storages.size(); ++i) {
    const auto& s = parts.storages[i];
    if (is_elsewhere(s))
      left->places[i] = snapshot + layout.storage_at(i);
    else
      pieces_.push_back({snapshot + layout.storage_at(i), s.data, s.bytes});
  }
}

result<void> process_arena::last_file(const std::string& name, std::string_view content) {
  if (!open_)
    return failure(errc::invalid, "the last save has kept no room for a file");
  const auto open = std::move(*open_);
  open_.reset();
  const auto bytes = add_last_file(memory(open.slot), open.room, open.list, name, content);
  if (bytes)
    last_bytes_ = *bytes;
  auto how = bytes.map([](std::uint64_t) {});
  parts_.added(how);
  return how;
}

void process_arena::no_last_file(const std::string& why) {
  if (!open_)
    return;
  open_.reset();
  parts_.added(failure(errc::refused, why));
}

void process_arena::copy(const std::vector<piece>& pieces) {
  if (background_)
    return background_->start(pieces, copier_, [this] { parts_.copied(); });
  copier_.run(pieces);
  parts_.copied();
}

void process_arena::filled(const result<void>& how) {
  parts_.filled(how);
}

result<void> process_arena::finish(std::size_t slot, const order& o) {
  std::unique_lock lock(all_->mutex);
  all_->memory.cut(slot, o.what.bytes);
  if (auto shown = all_->memory[slot].show(o.what.bytes); !shown) {
    lock.unlock();
    abandon(slot);
    return shown;
  }
  all_->share->touched();
  begun_.reset();
  auto to = o.to;
  if (to.shards == 0) // it goes nowhere, and people are to know whose it is
    std::copy_n(place_.begin(), std::min(place_.size(), to.place.size() - 1), to.place.begin());
  slots_.finish(slot, o.what, to, o.persist_requested);
  // Copies may have been requested while it was being copied itself.
  if (o.persist_requested || slots_.word(slot).copied)
    all_->saver.signal();
  return {};
}

result<void> process_arena::request_persist(std::size_t slot) {
  if (slot >= slots_.count() || !slots_.request_persist(slot))
    return failure(errc::invalid, fmt::format("the image in slot {} has nowhere to go", slot));
  all_->saver.signal();
  return {};
}

result<std::size_t> process_arena::request_copies(std::optional<std::size_t> slot,
                                                  const slot_group& by) {
  if (is_anothers())
    return failure(errc::invalid, "this memory is another process's");
  if (!slot && !last_saved_)
    return failure(errc::invalid, "nothing was saved of which there could be copies");
  // The next save could never begin.
  if (snapshots() == 1)
    return failure(errc::refused, "memory suffices for one image only: none can stay for others");
  const auto which = slot.value_or(last_saved_.value_or(0));
  if (which >= slots_.count() || slots_.word(which).state == slot_state::empty)
    return failure(errc::invalid, fmt::format("there is no image in slot {}", which));
  if (!slots_.request_copies(which, by))
    return failure(errc::overloaded,
                   fmt::format("copies of the image in slot {} are being made already", which));
  all_->saver.signal();
  return which;
}

result<void> process_arena::set_replica_base(std::uint64_t sequence) {
  if (is_anothers())
    return failure(errc::invalid, "this memory is another process's");
  if (sequence == 0) {
    slots_.set_replica_base(std::nullopt);
    return {};
  }
  const auto all = newest_first();
  if (std::none_of(all.begin(), all.end(),
                   [&](std::size_t slot) { return this->sequence(slot) == sequence; }))
    return failure(errc::invalid, fmt::format("no image here has the sequence {}", sequence));
  slots_.set_replica_base(sequence);
  return {};
}

result<bool> process_arena::finalized(std::size_t slot, std::uint64_t sequence, duration within,
                                      purpose what) {
  if (slot >= slots_.count())
    return failure(errc::invalid, fmt::format("there is no slot {}", slot));
  const auto until = std::chrono::steady_clock::now() + within;
  for (;;) {
    const auto seen = slots_.outcomes_told().load();
    if (const auto how = slots_.finalized(slot, sequence, what)) {
      if (!how->succeeded)
        return failure(errc::refused, how->why);
      return true;
    }
    const auto left = until - std::chrono::steady_clock::now();
    if (left <= duration::zero())
      return false;
    os::wait_while(slots_.outcomes_told(), seen, left);
  }
}

result<void> process_arena::saved() {
  if (background_)
    background_->wait();
  return parts_.ended();
}

std::vector<std::size_t> process_arena::newest_first() const {
  const auto all = is_anothers() && slots_.place() == 0;
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < slots_.count(); ++i)
    if (slots_.word(i).state == slot_state::ready && (all || slots_.place_of(i) == slots_.place()))
      found.push_back(i);
  std::sort(found.begin(), found.end(),
            [this](std::size_t a, std::size_t b) { return sequence(a) > sequence(b); });
  return found;
}

std::vector<std::size_t> process_arena::newest_of_others() const {
  std::vector<std::size_t> found;
  for (const auto one : slots_.places())
    if (one != slots_.place())
      if (const auto slot = slots_.at(one).newest())
        found.push_back(*slot);
  return found;
}

result<slot_mapping> process_arena::open_for_mapping(std::size_t slot, std::uint64_t sequence) {
  if (slot >= slots_.count())
    return failure(errc::invalid, fmt::format("there is no image {} in slot {}", sequence, slot));
  return ckpt::open_for_mapping(slots_, slot, sequence, descriptor(slot));
}

result<held_piece> process_arena::held_in(std::size_t slot, std::uint64_t sequence) {
  if (!is_anothers())
    return failure(errc::invalid, "pieces of others' images are never in a process's own memory");
  if (slot >= slots_.count())
    return failure(errc::invalid, fmt::format("the piece in slot {} is gone", slot));
  return ckpt::held_in(slots_, all_->memory[slot], slot, sequence);
}

result<void> process_arena::seal(std::size_t slot) {
  if (slot >= slots_.count() || !slots_.hold(slot))
    return failure(errc::invalid, fmt::format("there is no image in slot {}", slot));
  auto done = seal_snapshot(memory(slot), slots_.snapshot(slot).bytes);
  if (done)
    slots_.mark_sealed(slot);
  slots_.release(slot);
  return done;
}

} // namespace troupe::ckpt
