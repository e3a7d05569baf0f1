#include "worker/slot_mapping.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::ckpt {

result<slot_mapping> open_for_mapping(slots& words, std::size_t slot, std::uint64_t sequence,
                                      int descriptor) {
  auto reader = os::memory_reader::open(descriptor);
  if (!reader)
    return tl::make_unexpected(reader.error());
  if (!words.set_mapped(slot, sequence))
    return failure(errc::invalid, fmt::format("there is no image {} in slot {}", sequence, slot));
  auto way = std::make_unique<os::aligned_choice>(descriptor, words.snapshot(slot).bytes);
  return slot_mapping{std::move(*reader), std::move(way)};
}

void release_if_unmapped(slots& words, std::size_t slot, int descriptor) {
  const auto word = words.word(slot);
  if (!word.mapped)
    return;
  // In this order: a load that opens it after the question sets the mapped bit itself, later.
  words.clear_mapped(slot);
  if (!os::sole_reader::open(descriptor))
    words.set_mapped(slot, word.sequence);
}

} // namespace troupe::ckpt
