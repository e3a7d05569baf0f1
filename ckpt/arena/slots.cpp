#include "ckpt/arena/slots.hpp"

#include "runtime/base/invariant.hpp"

#include <algorithm>
#include <utility>

namespace troupe::ckpt {

namespace {

constexpr unsigned state_bits = 2, flag_bits = 1, reader_bits = 10;
constexpr unsigned sealed_at = state_bits, mapped_at = sealed_at + flag_bits,
                   persist_requested_at = mapped_at + flag_bits,
                   copied_at = persist_requested_at + flag_bits, readers_at = copied_at + flag_bits,
                   sequence_at = readers_at + reader_bits;
static_assert(slot_word::readers_max == (1u << reader_bits) - 1);

} // namespace

std::uint64_t pack(const slot_word& word) {
  return static_cast<std::uint64_t>(word.state) | std::uint64_t{word.sealed} << sealed_at |
         std::uint64_t{word.mapped} << mapped_at |
         std::uint64_t{word.persist_requested} << persist_requested_at |
         std::uint64_t{word.copied} << copied_at | std::uint64_t{word.readers} << readers_at |
         word.sequence << sequence_at;
}

slot_word unpack(std::uint64_t word) {
  slot_word found;
  // A fourth value is never written: worthless, like what a dead process was writing.
  const auto state = word & ((1u << state_bits) - 1);
  found.state = state > 2 ? slot_state::writing : static_cast<slot_state>(state);
  found.sealed = (word >> sealed_at & 1) != 0;
  found.mapped = (word >> mapped_at & 1) != 0;
  found.persist_requested = (word >> persist_requested_at & 1) != 0;
  found.copied = (word >> copied_at & 1) != 0;
  found.readers = static_cast<std::uint16_t>(word >> readers_at & slot_word::readers_max);
  found.sequence = word >> sequence_at;
  return found;
}

void slots::format() {
  for (auto& s : table_.slots) {
    s.word.store(pack({}));
    s.place = 0;
    s.of.rollback_point = 0;
    s.of.replica_base = 0;
    s.last_copied = false;
    for (auto& outcome : s.outcomes)
      outcome.sequence = 0;
  }
  table_.magic.store(slot_table::magic_value);
}

std::optional<std::size_t> slots::newest() const {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < count(); ++i)
    if (const auto w = word(i);
        w.state == slot_state::ready && own(i) && (!found || w.sequence > word(*found).sequence))
      found = i;
  return found;
}

std::array<std::size_t, slot_table::slots_max> slots::oldest_first() const {
  std::array<std::pair<std::uint64_t, std::size_t>, slot_table::slots_max> aged{};
  for (std::size_t i = 0; i < aged.size(); ++i)
    aged[i] = {word(i).sequence, i};
  std::sort(aged.begin(), aged.end());
  std::array<std::size_t, slot_table::slots_max> all{};
  std::transform(aged.begin(), aged.end(), all.begin(), [](const auto& a) { return a.second; });
  return all;
}

std::vector<place_id> slots::places() const {
  std::vector<place_id> found;
  const auto all = oldest_first();
  for (auto slot = all.rbegin(); slot != all.rend(); ++slot)
    if (word(*slot).state == slot_state::ready &&
        std::find(found.begin(), found.end(), place_of(*slot)) == found.end())
      found.push_back(place_of(*slot));
  return found;
}

std::vector<std::size_t> slots::by_age(whose of) const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < count(); ++i)
    if (const auto w = word(i);
        w.state == slot_state::ready && !w.mapped && (of == whose::any || own(i)))
      found.push_back(i);
  std::sort(found.begin(), found.end(),
            [this](std::size_t a, std::size_t b) { return word(a).sequence < word(b).sequence; });
  return found;
}

std::optional<std::size_t> slots::empty(const slot_set& preferred) const {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < count(); ++i)
    if (word(i).state == slot_state::empty && (!found || (preferred[i] && !preferred[*found])))
      found = i;
  return found;
}

/// Not by a word of its own: which snapshot stays changes without its slot's.
bool slots::stays(std::size_t slot, const slot_word& word) const {
  return word.state == slot_state::ready &&
         (table_.slots[slot].last_copied.load() || at(place_of(slot)).replica_base() == slot);
}

std::optional<std::size_t>
slots::marked(std::atomic<std::uint64_t> slot_table::marks::*which) const {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < count(); ++i)
    if (const auto w = word(i); w.state == slot_state::ready && own(i) &&
                                (table_.slots[i].of.*which).load() == w.sequence &&
                                (!found || w.sequence > word(*found).sequence))
      found = i;
  return found;
}

/// The new mark is set before the old ones are cleared: a process that dies in between leaves two
/// snapshots that stay, and not none.
void slots::mark(std::atomic<std::uint64_t> slot_table::marks::*which, std::uint64_t sequence) {
  for (std::size_t i = 0; i < count() && sequence != 0; ++i)
    if (own(i) && word(i).sequence == sequence)
      table_.slots[i].of.*which = sequence;
  for (std::size_t i = 0; i < count(); ++i)
    if (own(i) && (table_.slots[i].of.*which).load() != sequence)
      table_.slots[i].of.*which = 0;
}

std::optional<std::size_t> slots::rollback_point() const {
  return marked(&slot_table::marks::rollback_point);
}

std::optional<std::size_t> slots::replica_base() const {
  return marked(&slot_table::marks::replica_base);
}

/// Of those that are not mapped: a mapped one counts nowhere.
std::size_t slots::most_snapshots(const std::vector<std::size_t>& snapshots) const {
  return snapshots_max + std::count_if(snapshots.begin(), snapshots.end(), [this](std::size_t i) {
           return word(i).copied || stays(i, word(i));
         });
}

bool slots::begin_in(std::size_t slot) {
  const auto begun = change(slot, [this, slot](slot_word& w) {
    if (w.readers != 0 || w.mapped || w.persist_requested || w.copied || stays(slot, w) ||
        w.state == slot_state::writing)
      return false;
    begun_from_ = w;
    w.state = slot_state::writing;
    w.sealed = false;
    return true;
  });
  if (!begun)
    return false;
  begun_over_ = table_.slots[slot].place.exchange(place_);
  table_.slots[slot].last_copied = false;
  return true;
}

std::optional<std::size_t> slots::begin(const slot_set& with_memory) {
  const auto snapshots = by_age(whose::own);
  const auto next = empty(with_memory);
  if (snapshots.size() < snapshots_ && next && begin_in(*next))
    return next;
  const auto keep =
      snapshots_ == 1 ? count() : rollback_point().value_or(newest().value_or(count()));
  for (const auto oldest : snapshots)
    if (oldest != keep && begin_in(oldest))
      return oldest;
  if (snapshots.size() < most_snapshots(snapshots) && next && begin_in(*next))
    return next;
  return std::nullopt;
}

std::optional<std::size_t> slots::begin_where(const std::function<bool(std::size_t)>& may_go) {
  for (const auto oldest : by_age(whose::any))
    if (may_go(oldest) && begin_in(oldest))
      return oldest;
  const auto next = empty({});
  return next && begin_in(*next) ? next : std::nullopt;
}

void slots::finish(std::size_t slot, const slot_snapshot& snapshot, const slot_destination& to,
                   bool persist_requested) {
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < count(); ++i)
    last = std::max(last, word(i).sequence);
  table_.slots[slot].snapshot = snapshot;
  table_.slots[slot].destination = to;
  const auto done = change(slot, [last, persist_requested](slot_word& w) {
    if (w.state != slot_state::writing)
      return false;
    w = {slot_state::ready, false, false, 0, last + 1, persist_requested, w.copied};
    return true;
  });
  invariant(done, "a save ends in a slot that it did not begin");
}

void slots::abandon(std::size_t slot) {
  const auto done = change(slot, [](slot_word& w) {
    if (w.state != slot_state::writing)
      return false;
    w = {slot_state::empty, false, false, 0, w.sequence};
    return true;
  });
  invariant(done, "a save is given up in a slot that it did not begin");
  table_.slots[slot].last_copied = false;
}

void slots::take_back(std::size_t slot) {
  const auto done = change(slot, [this, slot](slot_word& w) {
    if (w.state != slot_state::writing)
      return false;
    table_.slots[slot].place = begun_over_;
    w.state = begun_from_.state;
    w.sealed = begun_from_.sealed;
    return true;
  });
  invariant(done, "a save is taken back in a slot that it did not begin");
}

bool slots::set_mapped(std::size_t slot, std::uint64_t sequence) {
  return change(slot, [sequence](slot_word& w) {
    w.mapped = true;
    return w.state == slot_state::ready && w.sequence == sequence;
  });
}

void slots::clear_mapped(std::size_t slot) {
  change(slot, [](slot_word& w) {
    w.mapped = false;
    return true;
  });
}

bool slots::request_persist(std::size_t slot) {
  return destination(slot).shards != 0 && change(slot, [](slot_word& w) {
           w.persist_requested = true;
           return w.state == slot_state::ready;
         });
}

bool slots::request_copies(std::size_t slot, const slot_group& by) {
  const auto now = word(slot);
  if (now.copied || now.state == slot_state::empty)
    return false; // the node may be reading the group that was said before
  auto& entry = table_.slots[slot];
  // What became of copies of this snapshot that were requested before says nothing of these.
  entry.outcomes[static_cast<std::size_t>(purpose::copies)].sequence = 0;
  entry.group = by;
  entry.last_copied = true;
  for (std::size_t i = 0; i < count(); ++i)
    if (i != slot && own(i))
      table_.slots[i].last_copied = false;
  return change(slot, [](slot_word& w) {
    w.copied = true;
    return w.state != slot_state::empty;
  });
}

std::optional<slots::known_outcome> slots::finalized(std::size_t slot, std::uint64_t sequence,
                                                     purpose what) const {
  const auto& outcome = table_.slots[slot].outcomes[static_cast<std::size_t>(what)];
  if (outcome.sequence.load() != sequence)
    return std::nullopt;
  const auto& why = outcome.why;
  return known_outcome{outcome.succeeded.load(),
                       std::string(why.begin(), std::find(why.begin(), why.end(), '\0'))};
}

void slots::finalize(std::size_t slot, std::uint64_t sequence, const known_outcome& how,
                     purpose what) {
  const auto flag = what == purpose::disk ? &slot_word::persist_requested : &slot_word::copied;
  const auto now = word(slot);
  // A slot that is being written has the sequence of the snapshot before.
  if (now.state != slot_state::ready || !(now.*flag) || now.sequence != sequence)
    return;
  auto& outcome = table_.slots[slot].outcomes[static_cast<std::size_t>(what)];
  outcome.succeeded = how.succeeded;
  outcome.why.fill('\0');
  std::copy_n(how.why.begin(), std::min(how.why.size(), outcome.why.size()), outcome.why.begin());
  outcome.sequence = sequence;
  change(slot, [flag](slot_word& w) {
    w.*flag = false;
    return true;
  });
  ++table_.outcomes_told;
}

std::optional<std::size_t> slots::drop_surplus() {
  const auto snapshots = by_age(whose::own);
  for (std::size_t i = 0; i + snapshots_ < snapshots.size(); ++i) {
    const auto dropped = change(snapshots[i], [this, slot = snapshots[i]](slot_word& w) {
      if (slot == rollback_point() || w.readers != 0 || w.mapped || w.persist_requested ||
          w.copied || stays(slot, w))
        return false;
      w = {slot_state::empty, false, false, 0, w.sequence};
      return true;
    });
    if (dropped)
      return snapshots[i];
  }
  return std::nullopt;
}

bool slots::hold(std::size_t slot) {
  return change(slot, [](slot_word& w) {
    if (w.state != slot_state::ready || w.readers == slot_word::readers_max)
      return false;
    ++w.readers;
    return true;
  });
}

void slots::release(std::size_t slot) {
  const auto done = change(slot, [](slot_word& w) {
    if (w.readers == 0)
      return false;
    --w.readers;
    return true;
  });
  invariant(done, "a slot is released that has no reader");
}

void slots::mark_sealed(std::size_t slot) {
  const auto done = change(slot, [](slot_word& w) {
    w.sealed = true;
    return w.state == slot_state::ready && w.readers != 0;
  });
  invariant(done, "a slot is sealed that has no reader");
}

void slots::writer_died() {
  for (std::size_t i = 0; i < count(); ++i)
    change(i, [](slot_word& w) {
      w.mapped = false;
      if (w.state == slot_state::writing)
        w = {slot_state::empty, false, false, 0, w.sequence};
      return true;
    });
}

void slots::readers_died() {
  for (std::size_t i = 0; i < count(); ++i)
    change(i, [](slot_word& w) {
      w.readers = 0;
      return true;
    });
}

} // namespace troupe::ckpt
