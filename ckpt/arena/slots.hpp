#pragma once

#include "ckpt/arena/place_id.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// Which of a training process's slots holds what: one table in memory that the process and its
/// node supervisor share. Each side may die at any instruction; no lock is held by anybody.
namespace troupe::ckpt {

enum class slot_state : std::uint8_t {
  empty,
  writing, ///< by the training process; worthless if that dies
  ready,   ///< a whole snapshot
};

/// A slot in one word, so that every change of it is one atomic step.
struct slot_word {
  slot_state state = slot_state::empty;
  bool sealed = false; ///< its checksums are filled in
  /// Tensors that were restored from it may be mappings of it: while one of them lives it may not
  /// change. It is free again when no mapping is left, or the process has died.
  bool mapped = false;
  std::uint16_t readers = 0;  ///< writing it out or sending it, at most `readers_max`
  std::uint64_t sequence = 0; ///< of the save that made it ready: larger is newer; 48 bits
  /// It is to be written out: it stays until that is finalized, whichever process dies meanwhile.
  bool persist_requested = false;
  /// The same for copies of it at other nodes.
  bool copied = false;

  static constexpr std::uint16_t readers_max = 0x03ff;
};

/// What can be requested of a snapshot, each by itself.
enum class purpose : std::uint8_t { disk, copies };

std::uint64_t pack(const slot_word& word);
slot_word unpack(std::uint64_t word);

/// What a snapshot is. Written by the training process while the slot is `writing`, read by others
/// while it is `ready`.
struct slot_snapshot {
  std::uint64_t step = 0;
  std::uint64_t generation = 0;
  /// Which save of its generation it is, counted by all ranks alike: ckpt/catalog/save_id.hpp.
  std::uint64_t save = 0;
  std::uint32_t rank = 0, world_size = 0;
  std::uint64_t bytes = 0;
};

/// Where the snapshot is written, if it is requested. `place` is set for all snapshots of a place
/// that has a name; `shards` only for those that can be requested. Texts end with a 0 or with their
/// array. The reader shares this memory with the writer, and takes nothing in it for granted.
struct slot_destination {
  std::array<char, 1024> place{};
  std::array<char, 256> directory{}, file{};
  std::uint32_t framework = 0, shard = 0, shards = 0;
  std::uint64_t save_within_ms = 0, keep_latest = 0, keep_every = 0;
  std::uint64_t resumed = 0;       ///< 1 + the step that training went on from; 0: not known
  std::uint64_t resumed_after = 0; ///< the last save of this generation before that
};

/// The text in one of these arrays.
template<std::size_t Size>
std::string text_in(const std::array<char, Size>& array) {
  return {array.begin(), std::find(array.begin(), array.end(), '\0')};
}

/// Where pieces of the snapshot are held, if copies of it are requested; ckpt/erasure/stripes.hpp
/// says what is whose. Read like a destination.
struct slot_group {
  static constexpr std::size_t members_max = 16;
  std::uint32_t members = 0, parity = 0, me = 0; ///< me: which of them
  std::array<std::uint32_t, members_max> ranks{};
  std::array<std::array<char, 128>, members_max> addresses{}; ///< "host:port"
  std::uint64_t within_ms = 0;
};

/// What became of the snapshot of this sequence that was requested here; of 0, of none yet.
struct slot_outcome {
  std::atomic<std::uint64_t> sequence;
  std::atomic<bool> succeeded;
  std::array<char, 512> why;
};

/// The table as it lies in memory. `magic` is written last, by the process that makes it.
struct slot_table {
  static constexpr std::uint64_t magic_value = 0x37746f6c73707274; // "trpslot7"
  /// Snapshots of all places, and those that were mapped.
  static constexpr std::size_t slots_max = 16;

  /// What others rely on. Each mark is of the snapshot of that sequence, so that it says nothing of
  /// the one that comes after it in the slot; 0: of none. Of several marked ones of a place the
  /// newest counts: a process may die between setting one and clearing the other.
  struct marks {
    /// All ranks have made this one, as far as they have said so. Without it a rank that dies while
    /// it saves could leave the others with newer ones only.
    std::atomic<std::uint64_t> rollback_point;
    /// It stays because other ranks rely on it.
    std::atomic<std::uint64_t> replica_base;
  };
  struct entry {
    std::atomic<std::uint64_t> word;
    /// Whose snapshot it is, or is to be: set by the process that begins to write, before all else.
    std::atomic<place_id> place;
    marks of;
    /// Copies of what is here, or is being written here, were requested last in its place. It
    /// stays, too: the ranks are yet to agree that all of them have theirs.
    std::atomic<bool> last_copied;
    slot_snapshot snapshot;
    slot_destination destination;
    slot_group group;
    std::array<slot_outcome, 2> outcomes; ///< by purpose
  };
  std::atomic<std::uint64_t> magic;
  /// Whose memory it is: its number among the node's. Set by the process that makes the memory.
  std::atomic<std::uint32_t> local_rank;
  /// Counts outcomes: the training process sleeps until it changes.
  std::atomic<std::uint32_t> outcomes_told;
  std::array<entry, slots_max> slots;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// Of an arena: its table, the memory of its slots, the node's memory_ledger, and the wake-up event
/// that wakes its saver. The last two are the same for all local ranks.
inline constexpr std::size_t arena_descriptors = 1 + slot_table::slots_max + 2;
inline constexpr std::size_t arena_ledger = 1 + slot_table::slots_max;

using slot_set = std::bitset<slot_table::slots_max>;

/// How readily a snapshot goes for one of another place, when memory or slots lack: the lowest
/// first, and of these the oldest.
enum class surplus : std::uint8_t {
  of_idle,        ///< its place is not open, and has a later one that all ranks have
  idle_on_disk,   ///< all that its place has, which is complete on a disk
  of_open,        ///< its place is open, and has a later one
  idle_in_memory, ///< all that its place has; the disk has an older one, or none
  open_on_disk,
  open_in_memory,
};

/// The rules of the snapshots in shared memory.
///
/// A training process saves again while other processes still use its earlier snapshots: the saver
/// of its node writes one to disk, another is being copied to other nodes, tensors that were loaded
/// from a third still map it. Each of these processes may die at any moment. A lock that a dead
/// process holds is never released, so there is none: all that the processes share is a table with
/// one word for each slot, and every change is one compare-and-swap of that word. What a dead
/// process left half done can be seen in the word, and its successor clears it.
///
/// A process may save states of several places, one after the other and at once. They share the
/// slots and the order of ages; which snapshot is the newest, which one stays and which may be
/// written over is decided among those of one place. An object of this class speaks for one.
class slots {
 public:
  /// How many snapshots there are to be; and there may be more of them while some are being read.
  static constexpr std::size_t snapshots_max = 4;

  /// `snapshots` of `place` are to be kept at once. With one, a process that dies while it saves
  /// has none. Precondition: 1 ≤ snapshots ≤ snapshots_max.
  slots(slot_table& table, std::size_t snapshots, place_id place = 0)
      : table_(table), snapshots_(snapshots), place_(place) {}

  /// Makes all slots empty; for the process that has just made the memory.
  void format();
  /// Whether `format` was ever finished here.
  bool formatted() const { return table_.magic.load() == slot_table::magic_value; }

  static constexpr std::size_t count() { return slot_table::slots_max; }
  place_id place() const { return place_; }
  /// The same table, for another place.
  slots at(place_id place) const { return {table_, snapshots_, place}; }
  std::size_t snapshots() const { return snapshots_; }
  /// From now on so many are kept. Precondition: as for the constructor.
  void keep(std::size_t snapshots) { snapshots_ = snapshots; }
  slot_word word(std::size_t slot) const { return unpack(table_.slots[slot].word.load()); }
  place_id place_of(std::size_t slot) const { return table_.slots[slot].place.load(); }
  const slot_snapshot& snapshot(std::size_t slot) const { return table_.slots[slot].snapshot; }
  const slot_destination& destination(std::size_t slot) const {
    return table_.slots[slot].destination;
  }
  const slot_group& group(std::size_t slot) const { return table_.slots[slot].group; }

  /// The newest snapshot of this place that is whole.
  std::optional<std::size_t> newest() const;
  /// The newest of this place that all ranks have, if that is known.
  std::optional<std::size_t> rollback_point() const;
  /// All slots, by the age of what they hold or held.
  std::array<std::size_t, slot_table::slots_max> oldest_first() const;
  /// The places that have whole snapshots, the one that saved last first.
  std::vector<place_id> places() const;

  // The training process. One thread of it at a time.

  /// The slot that the next save goes to, now `writing`: an empty one until there are as many
  /// snapshots of this place as are to be kept, then the oldest that has no reader and is not
  /// mapped; never the newest that all ranks have (if that is not known, the newest), unless it is
  /// the only one to be kept. While all others are being read, one more than are to be kept.
  /// Nothing: there are as many as there can be, and all are being read; or no slot is empty. One
  /// that stays for others, and one of which copies are made, come on top of that. Of empty slots
  /// one `with_memory` comes first: it costs no more.
  std::optional<std::size_t> begin(const slot_set& with_memory = {});
  /// The oldest snapshot that may go, of whatever place, which costs no more memory, else an empty
  /// slot, now `writing`. For memory in which there are others' snapshots. `may_go` is asked by
  /// slot.
  std::optional<std::size_t> begin_where(const std::function<bool(std::size_t)>& may_go);
  /// Precondition: `slot` came from `begin`.
  void finish(std::size_t slot, const slot_snapshot& snapshot, const slot_destination& to = {},
              bool persist_requested = false);
  /// What was begun is not to be.
  void abandon(std::size_t slot);
  /// The same, if nothing was written yet: what was there before `begin` is there again.
  void take_back(std::size_t slot);
  /// Whether the slot that was begun last held a snapshot, which `take_back` brings back.
  bool begun_over_snapshot() const { return begun_from_.state == slot_state::ready; }
  /// Sets the mapped bit: the snapshot of this sequence is mapped, in whichever process, for
  /// however long. False: it is no more.
  bool set_mapped(std::size_t slot, std::uint64_t sequence);
  /// Clears the mapped bit. The caller must then verify with the kernel that no mapping exists, and
  /// set the bit again if one does, before it begins anything.
  void clear_mapped(std::size_t slot);
  /// False: it is no whole snapshot, or was saved without a destination.
  bool request_persist(std::size_t slot);
  /// Pieces of it are to be held by this group, and it stays until copies of another of this place
  /// are requested. Also while it is `writing`. False: it is neither, or they are already, and that
  /// is not finalized yet.
  bool request_copies(std::size_t slot, const slot_group& by);
  /// From now on this snapshot stays, and the one of this place that did before need not. Nothing:
  /// none does.
  void set_replica_base(std::optional<std::uint64_t> sequence) {
    mark(&slot_table::marks::replica_base, sequence.value_or(0));
  }
  /// The slot of that snapshot, if it is whole.
  std::optional<std::size_t> replica_base() const;
  /// All ranks have a snapshot of this one's step. 0: nothing is known of others.
  void set_rollback_point(std::uint64_t sequence) {
    mark(&slot_table::marks::rollback_point, sequence);
  }
  struct known_outcome {
    bool succeeded = false;
    std::string why; ///< if it was not
  };
  /// Of the snapshot of this sequence that was requested here; nothing as long as it is not
  /// finalized.
  std::optional<known_outcome> finalized(std::size_t slot, std::uint64_t sequence,
                                         purpose what = purpose::disk) const;
  std::atomic<std::uint32_t>& outcomes_told() { return table_.outcomes_told; }
  /// The oldest snapshot of this place beyond those that are to be kept, now empty: its memory is
  /// of no use. For a process that begins and finds what another has left.
  std::optional<std::size_t> drop_surplus();

  struct evicted {
    std::size_t slot = 0;
    surplus what = surplus::of_idle;
    place_id place = 0;
    std::uint64_t step = 0;
  };
  /// A snapshot of another place that goes at least as readily as `at_most` says, now empty.
  /// Nothing: there is none, or all are being written, read or mapped. What stays for other ranks
  /// goes only where more than `of_open` may. `is_open`: whether this process saves there.
  std::optional<evicted> evict(surplus at_most, const std::function<bool(place_id)>& is_open);
  /// Whether a snapshot of another place is in use by processes that let go of it in time.
  bool others_are_busy() const;

  // The node supervisor.

  /// The snapshot may be read until `release`. False: it is no whole snapshot any more.
  bool hold(std::size_t slot);
  void release(std::size_t slot);
  void mark_sealed(std::size_t slot);
  /// The snapshot of this sequence, if it is still requested here for that, is not any more.
  void finalize(std::size_t slot, std::uint64_t sequence, const known_outcome& how,
                purpose what = purpose::disk);
  /// The training process has died: what it was writing is nothing, what it had mapped is free.
  void writer_died();
  /// A supervisor that comes after one that died reads nothing yet.
  void readers_died();

 private:
  /// `with` changes a word, or says that it cannot be changed so.
  template<class Change>
  bool change(std::size_t slot, Change&& with) {
    auto& shared = table_.slots[slot].word;
    auto seen = shared.load();
    for (;;) {
      auto next = unpack(seen);
      if (!with(next))
        return false;
      if (shared.compare_exchange_weak(seen, pack(next)))
        return true;
    }
  }
  bool begin_in(std::size_t slot);
  bool own(std::size_t slot) const { return place_of(slot) == place_; }
  void mark(std::atomic<std::uint64_t> slot_table::marks::*which, std::uint64_t sequence);
  /// The newest of this place with that mark.
  std::optional<std::size_t> marked(std::atomic<std::uint64_t> slot_table::marks::*which) const;
  std::optional<std::size_t> empty(const slot_set& preferred) const;
  bool stays(std::size_t slot, const slot_word& word) const;
  surplus kind_of(std::size_t slot, const std::function<bool(place_id)>& is_open) const;
  std::size_t most_snapshots(const std::vector<std::size_t>& snapshots) const;
  enum class whose : std::uint8_t { own, any };
  /// Snapshots that are not mapped, oldest first.
  std::vector<std::size_t> by_age(whose of) const;

  slot_table& table_;
  std::size_t snapshots_;
  place_id place_;
  slot_word begun_from_;    ///< what was in the slot that was begun last,
  place_id begun_over_ = 0; ///< and whose it was
};

} // namespace troupe::ckpt
