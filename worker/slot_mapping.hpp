#pragma once

#include "ckpt/arena/slots.hpp"
#include "runtime/base/result.hpp"
#include "runtime/os/memory/huge_pages.hpp"
#include "runtime/os/memory/readers.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace troupe::ckpt {

/// A snapshot that a library opens and maps while this lives; with huge pages, if it can be.
///
/// Tensors that were loaded may be mappings of a slot, for as long as training goes on. That a slot
/// may be written to again only the kernel can say, since no process says when it is done.
struct slot_mapping {
  /// Open from before the mapped bit is set until the slot is mapped. So a slot without a reader
  /// has no mapping, and a load that is about to map it has not set the bit yet.
  os::memory_reader reader;
  std::unique_ptr<os::aligned_choice> way;
};

/// `descriptor`: of the slot's memory. `invalid` if the snapshot of this sequence is no more.
result<slot_mapping> open_for_mapping(slots& words, std::size_t slot, std::uint64_t sequence,
                                      int descriptor);

/// Frees the slot if its mappings are all gone. Asks the kernel: that takes microseconds.
void release_if_unmapped(slots& words, std::size_t slot, int descriptor);

} // namespace troupe::ckpt
