#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// How the ranks of a node share its memory: decided here, without I/O.
///
/// Each rank of a node sees the same free memory. If each took what it sees, all of them together
/// would take more than there is, and the kernel would kill one. So each rank declares how large
/// its snapshots are, and one rank decides for all of them: as many snapshots for each rank as fit
/// for every rank. What a rank may use and has not touched yet is subtracted from what another one
/// sees.
namespace troupe::ckpt {

/// What one local rank has declared.
struct rank_memory {
  bool opened = false;        ///< its process, or one before it, has opened its memory
  std::uint64_t snapshot = 0; ///< bytes of one snapshot, with slack; 0: not declared yet
  std::uint32_t wanted = 0;   ///< snapshots that it wants to keep
  std::uint64_t mapped = 0;   ///< bytes that tensors hold which were loaded: no save may use them
  std::uint64_t backed = 0;   ///< bytes for which the kernel has given pages
  /// Bytes that the rank is touching just now. So many of `backed` may be missing there yet.
  std::uint64_t in_transit = 0;
  std::uint64_t planned = 0; ///< bytes that the last decision has given to this rank
};

/// What all local ranks have declared, and what was decided for them.
struct node_memory {
  std::vector<rank_memory> ranks;
  /// Of other nodes' snapshots that this node holds.
  std::uint64_t replicas_reserved = 0, replicas_backed = 0;
  std::uint32_t kept = 0; ///< snapshots of each rank; 0: not decided, or not one fits
};

/// A rank's question. Its declaration is in `node_memory` already.
struct memory_wish {
  std::size_t rank = 0;
  std::uint64_t more = 0; ///< bytes that it touches now, if it may
  /// A new life, or one that needs less than before: there may be memory for more snapshots again.
  bool may_raise = false;
  /// What another rank does just now may change the answer: it is `wait` then.
  bool may_wait = true;
};

enum class memory_verdict : std::uint8_t { granted, wait, refused };

struct memory_answer {
  memory_verdict verdict = memory_verdict::refused;
  bool planned = false; ///< a decision for all ranks was made
  /// There is a multiple of all that was promised here and is not touched yet: another launcher
  /// that decides at this moment by the same free memory may touch as much.
  bool ample = false;
  /// What is missing, if it was refused; `kept` says whether for one snapshot of each rank, or for
  /// what this rank touches now.
  std::uint64_t needed = 0, there = 0;
  /// What the ranks want, if `planned`, and what there is for all of them.
  std::uint64_t wanted_by_all = 0, there_for_all = 0;
};

/// `room`: how much more memory may be used now. Changes `kept` and what is planned for each rank.
/// Precondition: the rank has opened its memory and declared a size.
memory_answer decide(node_memory& node, std::uint64_t room, const memory_wish& wish);

/// What of the node's memory is left to training, of `room` that there is now.
std::uint64_t headroom_of(const node_memory& node, std::uint64_t room);

/// What may be used for replicas now: what no rank of this node was promised.
std::uint64_t room_for_replicas(const node_memory& node, std::uint64_t room);

/// Snapshots that the rank with the highest wish wants.
std::uint32_t wanted_by_ranks(const node_memory& node);
/// How many local ranks save.
std::size_t ranks_that_save(const node_memory& node);

/// One line for the user: how many snapshots of each rank are kept. `kept` is at least 1.
std::string kept_line(std::uint32_t kept, std::uint32_t wanted, std::uint64_t bytes_wanted,
                      std::uint64_t bytes_there, const std::string& bound);

/// In MiB, rounded up: a message never says that 0 MiB are missing.
constexpr std::uint64_t mib_needed(std::uint64_t bytes) {
  return (bytes >> 20) + 1;
}

} // namespace troupe::ckpt
