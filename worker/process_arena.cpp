#include "worker/process_arena.hpp"

#include "runtime/os/memory/snapshot_memory.hpp"
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

result<std::unique_ptr<process_arena>> process_arena::open(std::size_t snapshots, unsigned threads,
                                                           const std::optional<descriptors>& left) {
  if (snapshots < 2 || snapshots > slots::snapshots_max)
    return failure(errc::invalid, fmt::format("{} images at once: there can be 2 to {}", snapshots,
                                              slots::snapshots_max));
  auto opened = map(snapshots, threads, left, whose::own);
  if (!opened)
    return opened;
  if (const auto taken = (*opened)->take_over(); !taken)
    return tl::make_unexpected(taken.error());
  return opened;
}

result<std::unique_ptr<process_arena>> process_arena::view(const descriptors& of_another) {
  auto opened = map(slots::snapshots_max, 1, of_another, whose::anothers);
  if (!opened)
    return opened;
  if (!(*opened)->slots_.formatted())
    return failure(errc::invalid, "no process has saved anything in that memory yet");
  (*opened)->others_ = true;
  return opened;
}

result<std::unique_ptr<process_arena>> process_arena::map(std::size_t snapshots, unsigned threads,
                                                          const std::optional<descriptors>& left,
                                                          whose own) {
  const auto piece = [&](std::size_t index, const std::string& name, std::uint64_t bytes) {
    return left ? os::shared_memory::adopt((*left)[index]) : os::shared_memory::create(name, bytes);
  };
  auto table = piece(0, "troupe-ckpt-table", sizeof(slot_table));
  if (!table)
    return tl::make_unexpected(table.error());
  if (const auto sound = os::check_table(*table, table->descriptor()); !sound)
    return tl::make_unexpected(sound.error());
  slot_memory::all memory;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    auto made = piece(1 + i, fmt::format("troupe-ckpt-{}", i), 0);
    if (!made)
      return tl::make_unexpected(made.error());
    memory[i] = std::move(*made);
  }
  // In the memory of another process the last two descriptors are those of this one's own arena.
  if (own == whose::anothers) {
    auto none = os::wake_event::create();
    if (!none)
      return tl::make_unexpected(none.error());
    return std::unique_ptr<process_arena>(new process_arena(
        std::move(*table), std::move(memory), std::nullopt, std::move(*none), snapshots, threads));
  }
  auto page =
      left ? os::shared_memory::adopt((*left)[arena_ledger]) : os::memory_ledger::make_page();
  if (!page)
    return tl::make_unexpected(page.error());
  auto ledger = os::memory_ledger::open(std::move(*page));
  if (!ledger)
    return tl::make_unexpected(ledger.error());
  auto saver = left ? os::wake_event::adopt(left->back()) : os::wake_event::create();
  if (!saver)
    return tl::make_unexpected(saver.error());
  return std::unique_ptr<process_arena>(new process_arena(std::move(*table), std::move(memory),
                                                          std::move(*ledger), std::move(*saver),
                                                          snapshots, threads));
}

process_arena::process_arena(os::shared_memory table, slot_memory::all memory,
                             std::optional<os::memory_ledger> ledger, os::wake_event saver,
                             std::size_t snapshots, unsigned threads)
    : table_(std::move(table)), memory_(std::move(memory)), saver_(std::move(saver)),
      slots_(*reinterpret_cast<slot_table*>(table_.data()), snapshots), copier_(threads) {
  if (ledger)
    share_.emplace(std::move(*ledger),
                   reinterpret_cast<slot_table*>(table_.data())->local_rank.load(), snapshots,
                   slots_, memory_);
}

result<void> process_arena::take_over() {
  if (slots_.formatted())
    slots_.writer_died();
  else
    slots_.format();
  while (const auto dropped = slots_.drop_surplus())
    if (const auto cleared = memory_[*dropped].clear(); !cleared)
      return cleared;
  share_->opened();
  return {};
}

process_arena::descriptors process_arena::all_descriptors() const {
  descriptors all{table_.descriptor()};
  for (std::size_t i = 0; i < slots_.count(); ++i)
    all[1 + i] = memory_[i].descriptor();
  all[arena_ledger] = share_ ? share_->descriptor() : -1;
  all.back() = saver_.descriptor();
  return all;
}

process_arena::~process_arena() {
  background_.reset();
  memory_.stop_filling();
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

result<void> process_arena::prepare(std::uint64_t bytes, std::vector<bytes_at> storages) {
  if (others_)
    return failure(errc::invalid, "this memory is another process's");
  if (background_)
    background_->wait();
  memory_.stop_filling();
  release_unmapped();
  // What protecting a state costs is counted in pages: the fewer the better.
  return share_->prepare(bytes, background_ ? std::move(storages) : std::vector<bytes_at>{});
}

result<std::size_t> process_arena::begin(std::uint64_t bytes) {
  last_saved_.reset();
  if (others_)
    return failure(errc::invalid, "this memory is another process's");
  release_unmapped();
  if (const auto agreed = share_->agree(bytes); !agreed)
    return tl::make_unexpected(agreed.error());
  const auto slot = slots_.begin(memory_.with_pages());
  if (!slot)
    return failure(errc::overloaded, "all images that there can be are being written out, or are "
                                     "used by what was loaded from them");
  if (const auto fitted = share_->fit(*slot, bytes); !fitted) {
    slots_.take_back(*slot);
    return tl::make_unexpected(fitted.error());
  }
  if (const auto made = memory_.enlarge(*slot, bytes); !made) {
    abandon(*slot);
    return tl::make_unexpected(made.error());
  }
  return *slot;
}

void process_arena::abandon(std::size_t slot) {
  slots_.abandon(slot);
  share_->touched();
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
    (void)memory_.filled();
    memory_.pin(*slot, layout.bytes());
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
  auto* const snapshot = memory_[slot].data();
  layout.write_frame(snapshot);
  pieces_.clear();
  pieces_.reserve(parts.heads.size() + parts.storages.size());
  for (std::size_t i = 0; i < parts.heads.size(); ++i)
    pieces_.push_back({snapshot + layout.head_at(i), parts.heads[i].data, parts.heads[i].bytes});
  if (left != nullptr)
    *left = {std::vector<char*>(parts.storages.size()), snapshot + memory_.pinned_bytes(slot)};
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
  const auto bytes = add_last_file(memory_[open.slot].data(), open.room, open.list, name, content);
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
  memory_.cut(slot, o.what.bytes);
  if (auto shown = memory_[slot].show(o.what.bytes); !shown) {
    abandon(slot);
    return shown;
  }
  share_->touched();
  slots_.finish(slot, o.what, o.to, o.persist_requested);
  // Copies may have been requested while it was being copied itself.
  if (o.persist_requested || slots_.word(slot).copied)
    saver_.signal();
  return {};
}

result<void> process_arena::request_persist(std::size_t slot) {
  if (slot >= slots_.count() || !slots_.request_persist(slot))
    return failure(errc::invalid, fmt::format("the image in slot {} has nowhere to go", slot));
  saver_.signal();
  return {};
}

result<std::size_t> process_arena::request_copies(std::optional<std::size_t> slot,
                                                  const slot_group& by) {
  if (others_)
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
  saver_.signal();
  return which;
}

result<void> process_arena::set_replica_base(std::uint64_t sequence) {
  if (others_)
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
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < slots_.count(); ++i)
    if (slots_.word(i).state == slot_state::ready)
      found.push_back(i);
  std::sort(found.begin(), found.end(),
            [this](std::size_t a, std::size_t b) { return sequence(a) > sequence(b); });
  return found;
}

result<slot_mapping> process_arena::open_for_mapping(std::size_t slot, std::uint64_t sequence) {
  if (slot >= slots_.count())
    return failure(errc::invalid, fmt::format("there is no image {} in slot {}", sequence, slot));
  return ckpt::open_for_mapping(slots_, slot, sequence, descriptor(slot));
}

void process_arena::release_unmapped() {
  for (std::size_t i = 0; i < slots_.count(); ++i)
    release_if_unmapped(slots_, i, descriptor(i));
}

result<held_piece> process_arena::held_in(std::size_t slot, std::uint64_t sequence) {
  if (!others_)
    return failure(errc::invalid, "pieces of others' images are never in a process's own memory");
  if (slot >= slots_.count())
    return failure(errc::invalid, fmt::format("the piece in slot {} is gone", slot));
  return ckpt::held_in(slots_, memory_[slot], slot, sequence);
}

result<void> process_arena::seal(std::size_t slot) {
  if (slot >= slots_.count() || !slots_.hold(slot))
    return failure(errc::invalid, fmt::format("there is no image in slot {}", slot));
  auto done = seal_snapshot(memory_[slot].data(), slots_.snapshot(slot).bytes);
  if (done)
    slots_.mark_sealed(slot);
  slots_.release(slot);
  return done;
}

} // namespace troupe::ckpt
