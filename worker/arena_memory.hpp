#pragma once

#include "ckpt/arena/slots.hpp"
#include "runtime/base/result.hpp"
#include "runtime/os/memory/shared_memory.hpp"
#include "runtime/os/memory/wake_event.hpp"
#include "worker/node_share.hpp"
#include "worker/slot_memory.hpp"

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace troupe::ckpt {

/// A training process's memory for snapshots, which all its checkpointers share.
///
/// A local rank has one table of slots from its launcher, and a script may save to several places:
/// stages one after the other, an evaluation beside training, the folds of a validation. Each place
/// has an arena (process_arena) of its own here. Where memory or slots do not suffice for all of
/// them, the place that saves now has them: what others have goes, what the disk has too before
/// what only memory has.
///
/// The process that uses it holds a lock of the kernel's on the table. So a program that a worker
/// starts, or a child that it forks, takes no memory from under its parent; the lock ends with the
/// process.
class arena_memory {
 public:
  using descriptors = std::array<int, arena_descriptors>;
  static constexpr place_id no_place = UINT64_MAX;

  /// Makes the memory, or takes over what another process has left: the descriptors are its own
  /// then. `overloaded` if a living process has it; it is named.
  static result<std::shared_ptr<arena_memory>> open(const std::optional<descriptors>& left);
  /// Another process's, which goes on using it: to be read only.
  static result<std::shared_ptr<arena_memory>> view(const descriptors& of_another);
  /// What is filled in the background ends early.
  ~arena_memory() { memory.stop_filling(); }
  arena_memory(const arena_memory&) = delete;
  arena_memory& operator=(const arena_memory&) = delete;

  bool is_anothers() const { return !share; }
  slots words_of(std::size_t snapshots, place_id place) const;
  descriptors all_descriptors() const;

  // With `lock`, which is this memory's.

  /// An arena of this place is there. It may be opened several times.
  void enter(place_id place, std::size_t wanted);
  void leave(place_id place);
  /// A slot for a snapshot of that size, now `writing`, with memory for it.
  result<std::size_t> begin(slots& words, std::uint64_t bytes, std::unique_lock<std::mutex>& lock);
  void release_unmapped();

  /// What the user should know of how many are kept, and of what went; each line is told once.
  std::optional<std::string> notice();

  os::shared_memory table;
  slot_memory memory;
  os::wake_event saver;
  std::optional<node_share> share; ///< none: it is another process's
  std::mutex mutex;                ///< of what is above; the slots' words are atomic

 private:
  arena_memory(os::shared_memory words, slot_memory::all pieces,
               std::optional<os::memory_ledger> ledger, os::wake_event wakes);
  enum class whose { own, anothers };
  static result<std::shared_ptr<arena_memory>> map(const std::optional<descriptors>& left,
                                                   whose own);
  result<void> claim() const;
  bool evict(const slots& by, surplus at_most);
  bool evict_from_closed(place_id but, surplus at_most);
  void make_all_room(const slots& by, std::unique_lock<std::mutex>& lock);

  std::set<place_id> closed_; ///< by this process
  std::set<place_id> told_;   ///< places that have lost what only memory had
  std::deque<std::string> lines_;
};

} // namespace troupe::ckpt
