#pragma once

#include "ckpt/arena/held_piece.hpp"
#include "ckpt/arena/slots.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"
#include "runtime/os/memory/copier.hpp"
#include "runtime/os/memory/huge_pages.hpp"
#include "runtime/os/memory/pinned_part.hpp"
#include "runtime/os/memory/readers.hpp"
#include "runtime/os/memory/shared_memory.hpp"
#include "runtime/os/memory/wake_event.hpp"
#include "runtime/ports/storage.hpp"
#include "worker/background_copy.hpp"
#include "worker/save_parts.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

namespace troupe::ckpt {

struct bytes_at {
  const char* data = nullptr;
  std::uint64_t bytes = 0;
};

/// A training process's end of its slots: finds memory, copies, says what there is.
///
/// A save looks for a slot whose memory may be overwritten, lays the file out there, and copies the
/// state's tensors to their places in it. From then on the snapshot belongs to whichever process
/// reads it (the node's saver, a successor of this process), and this object only learns what
/// became of it by looking at the table.
class process_arena {
 public:
  /// The descriptors of an arena: of the table, of each slot's memory, and of the wake-up event
  /// that wakes its saver.
  static constexpr std::size_t descriptors_count = arena_descriptors;
  using descriptors = std::array<int, descriptors_count>;

  /// `snapshots` are to be kept at once. Makes the memory, or takes over what another process has
  /// left: the descriptors are its own then, and that process has ended.
  static result<std::unique_ptr<process_arena>> open(std::size_t snapshots, unsigned threads,
                                                     const std::optional<descriptors>& left);
  /// Another process's, which goes on using it: to be read only.
  static result<std::unique_ptr<process_arena>> view(const descriptors& of_another);
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
  /// Without `left` all storages have an address.
  result<void> save(const order& o, bytes_at pickle, const std::vector<bytes_at>& storages,
                    places_left* left);
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
  char* memory(std::size_t slot) const { return memory_[slot].data(); }
  result<void> finish(std::size_t slot, const order& o);
  void abandon(std::size_t slot) { slots_.abandon(slot); }

  /// A snapshot that a library opens and maps while this lives; with huge pages, if it can be.
  struct mapping {
    /// Open from before the mapped bit is set until the slot is mapped. So a slot without a reader
    /// has no mapping, and a load that is about to map it has not set the bit yet.
    os::memory_reader reader;
    std::unique_ptr<os::aligned_choice> way;
  };
  result<mapping> open_for_mapping(std::size_t slot, std::uint64_t sequence);
  result<void> seal(std::size_t slot);

  /// What the snapshot of this sequence in memory for others' snapshots is, a view. `invalid` if it
  /// is gone, or no piece.
  result<held_piece> held_in(std::size_t slot, std::uint64_t sequence);

  /// Whole snapshots, newest first.
  std::vector<std::size_t> newest_first() const;
  const slot_snapshot& snapshot(std::size_t slot) const { return slots_.snapshot(slot); }
  std::uint64_t sequence(std::size_t slot) const { return slots_.word(slot).sequence; }
  int descriptor(std::size_t slot) const { return memory_[slot].descriptor(); }
  descriptors all_descriptors() const;
  /// 0: not decided yet.
  std::size_t snapshots() const { return decided_ ? slots_.snapshots() : 0; }

 private:
  using slot_memory = std::array<os::shared_memory, slot_table::slots_max>;
  process_arena(os::shared_memory table, slot_memory memory, os::wake_event saver,
                std::size_t snapshots, unsigned threads);
  static result<std::unique_ptr<process_arena>> map(std::size_t snapshots, unsigned threads,
                                                    const std::optional<descriptors>& left);

  result<void> take_over();
  std::uint64_t memory_held() const;
  result<void> decide_snapshots(std::uint64_t bytes);
  void release_unmapped();
  result<void> fit(std::size_t slot, std::uint64_t bytes);
  void fill(std::uint64_t bytes, std::vector<bytes_at> storages);
  void stop_filling();
  void pin(std::size_t slot, std::uint64_t bytes);
  void copy(const std::vector<piece>& pieces);

  os::shared_memory table_;
  slot_memory memory_;
  std::array<os::pinned_part, slot_table::slots_max> pinned_;
  std::optional<os::pinning> pinning_; ///< none: nothing is to be pinned, or the driver refuses
  os::wake_event saver_;
  slots slots_;
  bool others_ = false; ///< another process's
  bool decided_ = false;
  std::optional<std::size_t> last_saved_; ///< where the last save goes, be it copied or not
  copier copier_;
  save_parts parts_;                            ///< what the last save still waits for
  std::unique_ptr<background_copy> background_; ///< with copy_on_write

  std::thread filler_;
  std::atomic<bool> stop_{false};
  result<void> filled_;
};

} // namespace troupe::ckpt
