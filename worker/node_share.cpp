#include "worker/node_share.hpp"

#include "runtime/base/time.hpp"
#include "runtime/os/memory/commit_turn.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace troupe::ckpt {

namespace {

/// The slack covers it, and the ledger need not be asked.
constexpr std::uint64_t negligible = 1u << 20;

/// What is touched between two looks at what is left.
constexpr std::uint64_t step_min = 1u << 20, step_max = 16u << 20;
/// How long one that is to touch waits for another of the same bound.
constexpr auto turn_within = 5s;

} // namespace

node_share::node_share(os::memory_ledger ledger, std::size_t rank, slots words, slot_memory& memory)
    : ledger_(std::move(ledger)), words_(words), memory_(memory) {
  declared_.rank = std::min<std::size_t>(rank, os::memory_ledger::ranks_max - 1);
}

void node_share::enter(place_id place, std::size_t wanted) {
  auto& one = places_[place];
  ++one.arenas;
  one.wanted = std::max(one.wanted, wanted);
  if (!decided_)
    kept_ = std::max(kept_, wanted);
}

/// What the others need may fit by now.
void node_share::leave(place_id place) {
  const auto at = places_.find(place);
  if (at == places_.end() || --at->second.arenas != 0)
    return;
  places_.erase(at);
  alone_.reset();
}

std::size_t node_share::kept(place_id place) const {
  return std::clamp<std::size_t>(ledger_.kept(), 1, places_.at(place).wanted);
}

/// What tensors hold that were loaded.
std::uint64_t node_share::mapped() const {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < slots::count(); ++i)
    all += words_.word(i).mapped ? memory_[i].backed() : 0;
  return all;
}

/// One snapshot of each place.
std::uint64_t node_share::of_all() const {
  return std::accumulate(places_.begin(), places_.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& p) {
                           return sum + std::min(p.second.snapshot, UINT64_MAX - sum);
                         });
}

/// Asks the ledger if that is another declaration than the last.
result<void> node_share::declare(std::uint64_t snapshot) {
  auto d = declared_;
  d.mapped = mapped();
  d.snapshot = snapshot;
  d.wanted = 0;
  for (const auto& [id, one] : places_)
    d.wanted = std::max(d.wanted, static_cast<std::uint32_t>(one.wanted));
  d.may_raise = !decided_ || d.mapped < declared_.mapped || d.snapshot < declared_.snapshot;
  if (decided_ && d.snapshot == declared_.snapshot && d.mapped == declared_.mapped &&
      d.wanted == declared_.wanted && ledger_.kept() != 0)
    return {};
  d.backed = memory_.backed();
  if (const auto asked = ledger_.reserve(d); !asked)
    return tl::make_unexpected(asked.error());
  declared_ = d;
  decided_ = true;
  return {};
}

result<void> node_share::agree(place_id place, std::uint64_t bytes) {
  auto& mine = places_.at(place);
  const auto before = mine.snapshot;
  if (before == 0 || bytes > before)
    mine.snapshot = with_slack(bytes);
  auto asked = declare(alone_ ? mine.snapshot : of_all());
  if (!asked && !alone_ && asked.error().code == errc::refused && of_all() > mine.snapshot) {
    asked = declare(mine.snapshot);
    tell_alone_ = asked.has_value() && declared_.rank == 0;
  }
  if (!asked) {
    mine.snapshot = before;
    return asked;
  }
  if (declared_.snapshot == mine.snapshot && of_all() > mine.snapshot)
    alone_ = place;
  follow();
  return {};
}

void node_share::follow() {
  const auto kept = std::max<std::size_t>(ledger_.kept(), 1);
  const auto pressed = ledger_.pressed();
  const auto shed = kept < kept_ || pressed != pressed_;
  kept_ = kept;
  pressed_ = pressed;
  if (shed)
    give_surplus_back();
}

/// What this process has beyond the snapshots that it keeps, as far as it is not used. Of places
/// that it does not save to, what the disk has as well.
void node_share::give_surplus_back() {
  std::size_t to_come = 0; // empty slots that saves are going to use
  for (const auto& [place, one] : places_) {
    auto words = words_.at(place);
    words.keep(kept(place));
    while (const auto dropped = words.drop_surplus())
      give_back(*dropped);
    std::size_t used = 0;
    for (std::size_t i = 0; i < slots::count(); ++i)
      if (const auto word = words.word(i);
          word.state != slot_state::empty && !word.mapped && words.place_of(i) == place)
        ++used;
    to_come += words.snapshots() - std::min(words.snapshots(), used);
  }
  while (const auto gone =
             words_.evict(surplus::idle_on_disk, [this](place_id one) { return is_open(one); }))
    give_back(gone->slot);
  for (std::size_t i = 0; i < slots::count(); ++i) {
    const auto word = words_.word(i);
    if (word.state != slot_state::empty || word.mapped || memory_[i].bytes() == 0)
      continue;
    if (to_come == 0)
      give_back(i);
    else
      --to_come;
  }
}

void node_share::give_back(std::size_t slot) {
  // If that fails the memory is there still, and is counted.
  [[maybe_unused]] const auto cleared = memory_.clear(slot);
  account();
}

result<bool> node_share::reserve(std::uint64_t more) {
  auto d = declared_;
  d.backed = memory_.backed();
  d.more = more;
  d.may_raise = false;
  auto ample = ledger_.reserve(d);
  if (ample)
    touching_until_ = std::max(touching_until_.load(), d.backed + more);
  return ample;
}

void node_share::account() {
  const auto now = memory_.backed(), until = touching_until_.load();
  ledger_.account(declared_.rank, now, until - std::min(until, now));
}

void node_share::nothing_in_transit() {
  if (!memory_.filling() && saving_ == 0)
    touching_until_ = 0;
  account();
}

void node_share::touched() {
  --saving_;
  nothing_in_transit();
}

result<bool> node_share::fit(std::size_t slot, std::uint64_t bytes) {
  // Before it is asked what is being filled: if that ends now, this save touches the rest of it.
  ++saving_;
  const auto is_there =
      memory_.missing(slot, bytes) <= negligible && memory_[slot].bytes() >= bytes;
  if (memory_.fills(slot, bytes) || is_there)
    return true;
  memory_.stop_filling();
  auto asked = reserve(memory_.missing(slot, bytes));
  if (!asked)
    touched();
  return asked;
}

result<void> node_share::commit(std::size_t slot, std::uint64_t bytes) {
  const auto first = ledger_.room();
  if (!first)
    return tl::make_unexpected(first.error());
  const auto turn = os::commit_turn::wait(first->shared, turn_within);
  std::uint64_t at = 0;
  while (at < bytes) {
    const auto room = ledger_.room();
    if (!room)
      return tl::make_unexpected(room.error());
    const auto free = ledger_.stays_free(*room);
    const auto missing = memory_.missing(slot, bytes);
    if (missing <= negligible)
      return {};
    // With the turn what there is will be there; without it each step has to look.
    if (room->bytes <= free || (turn && room->bytes - free < missing))
      return failure(errc::refused,
                     fmt::format("{} MiB of memory more are needed, and others of the same bound "
                                 "have taken what there was: {}",
                                 mib_needed(missing), room->bound));
    const auto step = std::clamp((room->bytes - free) / 4, step_min, step_max);
    const auto made = memory_[slot].make_pages(at, std::min(step, bytes - at));
    if (!made)
      return tl::make_unexpected(made.error());
    if (!*made)
      return {}; // it is touched as it is copied to
    at += step;
    account();
  }
  return {};
}

/// The empty slots that are the next to be used until all are that are kept, with leave to touch
/// all of them.
result<std::vector<std::size_t>> node_share::reserve_empty_slots(place_id place,
                                                                 std::uint64_t bytes) {
  for (;;) {
    const auto kept = this->kept(place);
    std::size_t used = 0;
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < slots::count(); ++i)
      if (const auto word = words_.word(i); word.mapped)
        continue;
      else if (word.state == slot_state::empty)
        found.push_back(i);
      else if (words_.place_of(i) == place)
        ++used;
    std::stable_partition(found.begin(), found.end(),
                          [there = memory_.with_pages()](auto i) { return there[i]; });
    found.resize(std::min(found.size(), kept - std::min(kept, used)));
    const auto more =
        std::accumulate(found.begin(), found.end(), std::uint64_t{0},
                        [&](std::uint64_t sum, auto i) { return sum + memory_.missing(i, bytes); });
    const auto ample = reserve(more);
    if (!ample)
      return tl::make_unexpected(ample.error());
    ample_ = *ample;
    follow();
    if (this->kept(place) >= kept)
      return found;
  }
}

result<void> node_share::prepare(place_id place, std::uint64_t bytes,
                                 std::vector<bytes_at> storages) {
  if (auto agreed = agree(place, bytes); !agreed)
    return agreed;
  auto which = reserve_empty_slots(place, bytes);
  if (!which) {
    nothing_in_transit();
    return tl::make_unexpected(which.error());
  }
  for (const auto slot : *which)
    if (auto made = memory_.enlarge(slot, bytes); !made) {
      nothing_in_transit();
      return made;
    }
  memory_.fill(std::move(*which), bytes, words_, std::move(storages),
               {[this, kept = ledger_.kept(), ample = ample_] {
                  account();
                  // Else another rank needs it, or another launcher has taken it.
                  return ledger_.kept() >= kept && (ample || is_some_left());
                },
                [this] { nothing_in_transit(); }});
  return {};
}

/// Beside what is touched in the next step.
bool node_share::is_some_left() const {
  const auto room = ledger_.room();
  return room && room->bytes > 2 * ledger_.stays_free(*room) + step_max;
}

std::optional<std::string> node_share::notice() {
  if (std::exchange(tell_alone_, false))
    return "memory does not suffice for a snapshot of each directory that this program saves to: "
           "the one that saved last has it, the others have what is on the disk";
  return ledger_.notice();
}

} // namespace troupe::ckpt
