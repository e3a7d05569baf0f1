#pragma once

#include "ckpt/arena/held_piece.hpp"
#include "ckpt/arena/slots.hpp"
#include "ckpt/snapshot/snapshot_layout.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"
#include "runtime/os/memory/copier.hpp"
#include "runtime/os/memory/pinned_part.hpp"
#include "runtime/ports/storage.hpp"
#include "worker/arena_memory.hpp"
#include "worker/background_copy.hpp"
#include "worker/save_parts.hpp"
#include "worker/slot_mapping.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::ckpt {

/// A training process's end of the slots of one place: finds memory, copies, says what there is.
///
/// A save looks for a slot whose memory may be overwritten, lays the file out there, and copies the
/// state's tensors to their places in it. From then on the snapshot belongs to whichever process
/// reads it (the node's saver, a successor of this process), and this object only learns what
/// became of it by looking at the table. Several of them share a process's memory.
class process_arena {
 public:
  /// The descriptors of an arena: of the table, of each slot's memory, of the node's memory_ledger,
  /// and of the wake-up event that wakes its saver.
  static constexpr std::size_t descriptors_count = arena_descriptors;
  using descriptors = arena_memory::descriptors;

  /// `snapshots` are to be kept at once, of the place `id`, which is called `place`.
  static result<std::unique_ptr<process_arena>> open(std::shared_ptr<arena_memory> memory,
                                                     std::size_t snapshots, unsigned threads,
                                                     place_id id, const std::string& place);
  /// Of another process's memory: to be read only. With 0 it sees the snapshots of all places, and
  /// pieces of other nodes' snapshots, whose place only their saves say (place_id.hpp).
  static std::unique_ptr<process_arena> view(std::shared_ptr<arena_memory> of_another, place_id id);
  /// What it has begun to save is given up.
  ~process_arena();

  /// See troupe_ckpt.h for what these do.
  result<void> copy_on_write();
  void pin_by(os::pinning how);
  result<void> prepare(std::uint64_t bytes, std::vector<bytes_at> storages);
  result<void> prepared();
  struct order {
    slot_snapshot what;
    slot_destination to;
    bool persist_requested = false;
  };
  /// What the caller has to fill.
  struct places_left {
    std::vector<char*> places; ///< of each storage; null: it is not left
    const char* pinned_end = nullptr;
  };
  /// What a snapshot is made of: where the bytes of its parts are. Sizes in `shape` are theirs.
  struct state_parts {
    snapshot_layout::contents shape;
    std::vector<bytes_at> heads; ///< of each part
    std::vector<bytes_at> storages;
  };
  /// Without `left` all storages have an address. Where everything lies, told until the next save.
  /// If room was kept for a last file, the snapshot is whole when `last_file` has been called as
  /// well.
  result<const snapshot_layout*> save(const order& o, const state_parts& parts, places_left* left);
  /// The file for which the last save has kept room. How the save ended then says `saved`.
  result<void> last_file(const std::string& name, std::string_view content);
  /// The last save is given up, since there is no such file; nothing if none is awaited.
  void no_last_file(const std::string& why);
  void filled(const result<void>& how);
  result<void> saved();
  result<void> request_persist(std::size_t slot);
  /// Without a slot: of the last save. Whose copies are requested.
  result<std::size_t> request_copies(std::optional<std::size_t> slot, const slot_group& by);
  /// 0: none stays.
  result<void> set_replica_base(std::uint64_t sequence);
  void set_rollback_point(std::uint64_t sequence) { slots_.set_rollback_point(sequence); }
  /// False: not known yet.
  result<bool> finalized(std::size_t slot, std::uint64_t sequence, duration within,
                         purpose what = purpose::disk);

  /// A snapshot that comes from elsewhere: a slot with memory for it.
  result<std::size_t> begin(std::uint64_t bytes);
  char* memory(std::size_t slot) const { return all_->memory[slot].data(); }
  result<void> finish(std::size_t slot, const order& o);
  void abandon(std::size_t slot);

  result<slot_mapping> open_for_mapping(std::size_t slot, std::uint64_t sequence);
  result<void> seal(std::size_t slot);

  /// What the snapshot of this sequence in memory for others' snapshots is, a view. `invalid` if it
  /// is gone, or no piece.
  result<held_piece> held_in(std::size_t slot, std::uint64_t sequence);

  /// Whole snapshots of this place, newest first.
  std::vector<std::size_t> newest_first() const;
  /// The newest of each other place.
  std::vector<std::size_t> newest_of_others() const;
  const slot_snapshot& snapshot(std::size_t slot) const { return slots_.snapshot(slot); }
  /// Of the snapshot's step, if it was said where that is written; else 0.
  std::uint32_t shards(std::size_t slot) const { return slots_.destination(slot).shards; }
  std::uint32_t shard(std::size_t slot) const { return slots_.destination(slot).shard; }
  /// What the snapshot's place is called; nothing if that was never said.
  std::string place_name(std::size_t slot) const { return text_in(slots_.destination(slot).place); }
  place_id place() const { return slots_.place(); }
  std::uint64_t sequence(std::size_t slot) const { return slots_.word(slot).sequence; }
  int descriptor(std::size_t slot) const { return all_->memory[slot].descriptor(); }
  descriptors all_descriptors() const { return all_->all_descriptors(); }
  /// 0: not decided yet.
  std::size_t snapshots() const;
  /// What the user should know of how many the ranks of this node keep; each line is told once.
  std::optional<std::string> notice() { return all_->notice(); }

 private:
  process_arena(std::shared_ptr<arena_memory> memory, std::size_t snapshots, unsigned threads,
                place_id id, const std::string& place);

  /// A snapshot that waits for its last file.
  struct open_snapshot {
    std::size_t slot = 0;
    std::uint64_t room = 0; ///< of the whole snapshot
    file_list list;
  };

  bool is_anothers() const { return all_->is_anothers(); }
  void lay_out(std::size_t slot, const snapshot_layout& layout, const state_parts& parts,
               places_left* left);
  void copy(const std::vector<piece>& pieces);

  const std::shared_ptr<arena_memory> all_;
  const std::string place_;
  slots slots_;
  std::optional<std::size_t> begun_;      ///< the slot that is being written
  std::optional<std::size_t> last_saved_; ///< where the last save goes, be it copied or not
  copier copier_;
  save_parts parts_; ///< what the last save still waits for
  std::optional<open_snapshot> open_;
  kept_layout layout_;        ///< of the last save
  std::vector<piece> pieces_; ///< of the last save
  /// Of the last save: its size, which its last file decides.
  std::atomic<std::uint64_t> last_bytes_{0};
  std::unique_ptr<background_copy> background_; ///< with copy_on_write
};

} // namespace troupe::ckpt
