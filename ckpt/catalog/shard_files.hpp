#pragma once

#include "ckpt/catalog/checkpoint_host.hpp"
#include "ckpt/catalog/step_catalog.hpp"
#include "runtime/base/result.hpp"
#include "runtime/ports/storage.hpp"

#include <atomic>
#include <cstdint>

/// Between a shard in memory and its files at a place. A shard is one file, or several with a list
/// of them (ckpt/snapshot/file_list.hpp), which is the file that the step's manifest names.
namespace troupe::ckpt {

/// Puts a sealed snapshot where its request says, its list last. The receipt of the file that the
/// manifest is to name. `check` is asked before each file takes its place.
result<ports::receipt> put_shard(ports::storage& storage, const destination& to,
                                 ports::bytes_view snapshot, const std::atomic<bool>& stop,
                                 const ports::may_replace& check);

/// Of a sealed snapshot, the file that the manifest is to name: its list, or all of it. A list has
/// the checksums of all its files, so snapshots with the same list are the same.
ports::bytes_view named_file(ports::bytes_view snapshot);

/// How much memory a shard of a complete step takes.
result<std::uint64_t> memory_of(ports::storage& storage, const found_step& from,
                                const shard& which);

/// Compares sizes alone, and reads a shard's list if it has one. `absent`: a file is not there;
/// `invalid`: it, or the list, is another.
result<void> check_shard_sizes(ports::storage& storage, const found_step& from, const shard& which);

/// Reads one shard of a complete step and compares sizes and checksums with what its manifest, or
/// its list, says; `into` has as much room as `memory_of` says.
result<void> load_shard(ports::storage& storage, const found_step& from, const shard& which,
                        ports::bytes_room into, const std::atomic<bool>& stop);

} // namespace troupe::ckpt
