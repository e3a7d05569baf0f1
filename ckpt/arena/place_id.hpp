#pragma once

#include <cstdint>

namespace troupe::ckpt {

/// A checkpoint directory and the framework that saves there, as one number that all ranks of a job
/// have alike (python/troupe/checkpoint/memory.py makes it). A state belongs to its place: a script
/// of several stages has a place for each, and one stage must never go on from another's state. 0:
/// the memory is one place's alone.
using place_id = std::uint64_t;

/// The number of a save (ckpt/catalog/save_id.hpp) counts above so many bits, which are those of
/// its place_id. So a node that holds pieces of another's snapshot knows whose they are. With a
/// count below 2^29 it stays exact where numbers are of floating point.
inline constexpr unsigned place_bits = 24;
constexpr std::uint64_t place_in(std::uint64_t save_number) {
  return save_number & ((std::uint64_t{1} << place_bits) - 1);
}
/// Which save it is, for people. A number without a place (tests, tools) counts by itself.
constexpr std::uint64_t count_in(std::uint64_t save_number) {
  return save_number < (std::uint64_t{1} << place_bits) ? save_number : save_number >> place_bits;
}

} // namespace troupe::ckpt
