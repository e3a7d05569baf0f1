#include "worker/arena_memory.hpp"

#include "ckpt/limits.hpp"
#include "runtime/base/time.hpp"
#include "runtime/os/memory/snapshot_memory.hpp"
#include "worker/slot_mapping.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <fcntl.h>

namespace troupe::ckpt {

namespace {

slot_table& table_in(const os::shared_memory& memory) {
  return *reinterpret_cast<slot_table*>(memory.data());
}

} // namespace

result<std::shared_ptr<arena_memory>> arena_memory::open(const std::optional<descriptors>& left) {
  auto opened = map(left, whose::own);
  if (!opened)
    return opened;
  if (left)
    if (const auto claimed = (*opened)->claim(); !claimed)
      return tl::make_unexpected(claimed.error());
  auto words = (*opened)->words_of(1, no_place);
  if (words.formatted())
    words.writer_died();
  else
    words.format();
  (*opened)->share->opened();
  return opened;
}

result<std::shared_ptr<arena_memory>> arena_memory::view(const descriptors& of_another) {
  auto opened = map(of_another, whose::anothers);
  if (opened && !(*opened)->words_of(1, no_place).formatted())
    return failure(errc::invalid, "no process has saved anything in that memory yet");
  return opened;
}

result<std::shared_ptr<arena_memory>> arena_memory::map(const std::optional<descriptors>& left,
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
    return std::shared_ptr<arena_memory>(
        new arena_memory(std::move(*table), std::move(memory), std::nullopt, std::move(*none)));
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
  return std::shared_ptr<arena_memory>(new arena_memory(std::move(*table), std::move(memory),
                                                        std::move(*ledger), std::move(*saver)));
}

arena_memory::arena_memory(os::shared_memory words, slot_memory::all pieces,
                           std::optional<os::memory_ledger> ledger, os::wake_event wakes)
    : table(std::move(words)), memory(std::move(pieces)), saver(std::move(wakes)) {
  if (ledger)
    share.emplace(std::move(*ledger), table_in(table).local_rank.load(),
                  words_of(slots::snapshots_max, no_place), memory);
}

slots arena_memory::words_of(std::size_t snapshots, place_id place) const {
  return {table_in(table), snapshots, place};
}

/// A record lock: it belongs to the process, and no child has it.
result<void> arena_memory::claim() const {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  if (::fcntl(table.descriptor(), F_SETLK, &whole) == 0)
    return {};
  if (::fcntl(table.descriptor(), F_GETLK, &whole) != 0 || whole.l_type == F_UNLCK)
    whole.l_pid = 0;
  return failure(errc::overloaded, fmt::format("process {} uses this memory", whole.l_pid));
}

arena_memory::descriptors arena_memory::all_descriptors() const {
  descriptors all{table.descriptor()};
  for (std::size_t i = 0; i < slots::count(); ++i)
    all[1 + i] = memory[i].descriptor();
  all[arena_ledger] = share ? share->descriptor() : -1;
  all.back() = saver.descriptor();
  return all;
}

void arena_memory::enter(place_id place, std::size_t wanted) {
  share->enter(place, wanted);
  closed_.erase(place);
  auto words = words_of(wanted, place);
  while (const auto dropped = words.drop_surplus())
    share->give_back(*dropped);
}

/// A hundred trials do not keep a hundred states: of places that were closed here the disk has what
/// they need, but for the last one.
void arena_memory::leave(place_id place) {
  share->leave(place);
  if (share->is_open(place))
    return;
  closed_.insert(place);
  while (evict_from_closed(place, surplus::idle_on_disk)) {
  }
  if (!share->is_any_open())
    memory.unpin();
}

bool arena_memory::evict_from_closed(place_id but, surplus at_most) {
  auto words = words_of(1, but);
  const auto gone = words.evict(at_most, [this](place_id one) { return closed_.count(one) == 0; });
  if (gone)
    share->give_back(gone->slot);
  return gone.has_value();
}

bool arena_memory::evict(const slots& by, surplus at_most) {
  auto words = by;
  const auto gone = words.evict(at_most, [this](place_id one) { return share->is_open(one); });
  if (!gone)
    return false;
  share->give_back(gone->slot);
  const auto only_here =
      gone->what == surplus::idle_in_memory || gone->what == surplus::open_in_memory;
  if (only_here && told_.insert(gone->place).second)
    lines_.push_back(fmt::format(
        "step {} of {} leaves memory, since there is not enough for all directories that this "
        "program saves to; what is on the disk is what is left of it",
        gone->step, text_in(words.destination(gone->slot).place)));
  return true;
}

/// Memory suffices for one place at a time. What is being written to a disk goes when it is there.
void arena_memory::make_all_room(const slots& by, std::unique_lock<std::mutex>& lock) {
  auto words = by;
  const auto until = std::chrono::steady_clock::now() + limits::other_places_wait_within;
  for (;;) {
    const auto seen = words.outcomes_told().load();
    while (evict(by, surplus::open_in_memory)) {
    }
    const auto left = until - std::chrono::steady_clock::now();
    if (!words.others_are_busy() || left <= duration::zero())
      return;
    lock.unlock();
    os::wait_while(words.outcomes_told(), seen, std::min<duration>(left, 100ms));
    lock.lock();
    release_unmapped();
  }
}

result<std::size_t> arena_memory::begin(slots& words, std::uint64_t bytes,
                                        std::unique_lock<std::mutex>& lock) {
  release_unmapped();
  if (const auto agreed = share->agree(words.place(), bytes); !agreed)
    return tl::make_unexpected(agreed.error());
  words.keep(share->kept(words.place()));
  if (share->has_alone(words.place()))
    make_all_room(words, lock);
  auto slot = words.begin(memory.with_pages());
  if (!slot && evict(words, surplus::open_in_memory))
    slot = words.begin(memory.with_pages());
  if (!slot)
    return failure(errc::overloaded, "all images that there can be are being written out, or are "
                                     "used by what was loaded from them");
  // What closed places have goes before a save is refused.
  const auto at_most =
      share->has_alone(words.place()) ? surplus::open_in_memory : surplus::idle_in_memory;
  auto fitted = share->fit(*slot, bytes);
  while (!fitted && fitted.error().code == errc::refused && evict(words, at_most))
    fitted = share->fit(*slot, bytes);
  if (!fitted) {
    words.take_back(*slot);
    return tl::make_unexpected(fitted.error());
  }
  const auto was_there = words.begun_over_snapshot() ? words.snapshot(*slot).bytes : 0;
  if (const auto made = memory.enlarge(*slot, bytes); !made) {
    words.abandon(*slot);
    share->touched();
    return tl::make_unexpected(made.error());
  }
  if (*fitted)
    return *slot;
  auto there = share->commit(*slot, bytes);
  while (!there && there.error().code == errc::refused && evict(words, at_most))
    there = share->commit(*slot, bytes);
  if (!there) {
    // With the pages that were touched the snapshot before stays, and nothing beyond it.
    if (const auto cut = memory[*slot].show(was_there); was_there == 0 || !cut)
      (void)memory.clear(*slot);
    words.take_back(*slot);
    share->touched();
    return tl::make_unexpected(there.error());
  }
  return *slot;
}

void arena_memory::release_unmapped() {
  auto words = words_of(1, no_place);
  for (std::size_t i = 0; i < slots::count(); ++i)
    release_if_unmapped(words, i, memory[i].descriptor());
}

std::optional<std::string> arena_memory::notice() {
  const std::lock_guard lock(mutex);
  if (!lines_.empty()) {
    auto line = std::move(lines_.front());
    lines_.pop_front();
    return line;
  }
  return share ? share->notice() : std::nullopt;
}

} // namespace troupe::ckpt
