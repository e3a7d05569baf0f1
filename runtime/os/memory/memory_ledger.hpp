#pragma once

#include "ckpt/arena/node_memory.hpp"
#include "runtime/base/result.hpp"
#include "runtime/os/memory/memory_room.hpp"
#include "runtime/os/memory/shared_memory.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace troupe::os {

/// The node's account of the memory of snapshots: one page that all processes of a launcher share.
///
/// Without it four ranks that each see room for one more snapshot take four, and the kernel kills
/// one of them. A rank asks here before it touches memory, `ckpt::decide` answers, and the page
/// says to all ranks how many snapshots each of them keeps.
///
/// The page is changed under a lock that the kernel releases when its owner dies, after at most
/// some milliseconds of work. Each entry has one writer: the process that has the local rank's
/// memory. What a dead process has reserved stays reserved for its next life, which finds the
/// memory there.
class memory_ledger {
 public:
  static constexpr std::size_t ranks_max = 64;
  using room_finder = std::function<result<memory_room>()>;

  /// Makes the page; for the process that makes the memory of snapshots.
  static result<shared_memory> make_page();
  /// Takes the page that another process has made. `invalid` if it is none.
  static result<memory_ledger> open(
      shared_memory page, room_finder room = [] { return find_memory_room(); });

  int descriptor() const { return page_.descriptor(); }

  struct declaration {
    std::size_t rank = 0;
    std::uint64_t snapshot = 0; ///< bytes of one, with slack
    std::uint32_t wanted = 0;   ///< snapshots to be kept
    std::uint64_t mapped = 0, backed = 0;
    std::uint64_t more = 0; ///< bytes to be touched now
    bool may_raise = false;
  };

  /// A process has the memory of this local rank from now on, and touches none of it yet.
  void opened(std::size_t rank, std::uint64_t backed);
  /// Whether `more` may be touched. Waits up to two seconds if that depends on what other ranks do
  /// just now. `refused` says what is needed and what is there.
  /// True: there is so much that other launchers which share the memory may take as much at this
  /// moment. False: it may be touched in small steps only, each after a look at what is left.
  result<bool> reserve(const declaration& d);
  /// What the rank has, and what of that which it may touch now it has not touched yet.
  void account(std::size_t rank, std::uint64_t backed, std::uint64_t in_transit);

  /// What there is by now, and what of that is to stay free.
  result<memory_room> room() const { return room_(); }
  std::uint64_t stays_free(const memory_room& now) const;

  /// Snapshots that each rank keeps; 0: not decided, or not one fits.
  std::uint32_t kept() const;
  /// Changes when a rank needs what others have beyond that.
  std::uint32_t pressed() const;
  /// What the user should know of the last decision, told once to one process of the node.
  std::optional<std::string> notice();

  /// The same for other nodes' snapshots, which have one writer at the node. `backed` is what they
  /// have now.
  result<void> reserve_replicas(std::uint64_t backed, std::uint64_t more);
  void account_replicas(std::uint64_t backed, std::uint64_t reserved);

 private:
  struct page;
  struct entry;
  memory_ledger(shared_memory memory, room_finder room)
      : page_(std::move(memory)), room_(std::move(room)) {}
  page& in() const;
  ckpt::node_memory read() const;
  void write(const ckpt::node_memory& node, const ckpt::memory_answer& a, const memory_room& room);
  result<ckpt::memory_answer> ask(const declaration& d, bool may_wait, memory_room& room);

  shared_memory page_;
  room_finder room_;
};

} // namespace troupe::os
