#pragma once

#include "ckpt/load/load_plan.hpp"
#include "runtime/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

/// Views and plans as rows of numbers, which is what a training program's ranks can tell each
/// other. The rows of a job are written and read by processes of one release: actor-launcher brings
/// the library along. Each list has its length before it.
namespace troupe::ckpt {

/// holds, more on disk; snapshots: generation, save, step, bytes, rank; steps: generation, save,
/// step, world size, shards; parities: generation, save, step, members, parity, stripe, row, slot,
/// sequence, and of each member its rank, bytes, CRC-32; snapshots of other worlds: generation,
/// save, step, bytes, rank, shard, shards, world size.
std::vector<std::uint64_t> to_numbers(const rank_view& view);

/// Shards; any world: 1 or 0; seen before: 1 and generation, save, step, or 0; failed: rank,
/// source, generation, save, step; then the view of each rank, all of them as to_numbers writes it.
/// `invalid` for what no rank has written.
result<load_question> question_of(const std::uint64_t* numbers, std::size_t count);

/// Outcome, done; generation, save, step; newest seen: 1 and generation, save, step, or 0; misfit:
/// world size, shards, step; sender; from: of each rank its source + 1, or 0; rebuilt: rank, bytes,
/// CRC-32; transfers: source, of, of a parity: 1 or 0, slot, sequence, begin, end, to, into, times;
/// moves: source, to, bytes; lost: 1 and generation, save, step, or 0; rank; parts: at, of.
std::vector<std::uint64_t> to_numbers(const load_plan& plan);

} // namespace troupe::ckpt
