#pragma once

#include <cstddef>
#include <cstdint>

/// Words that hold the address of a C function are made to hold the address of one of ours, which
/// calls that function with the same arguments and looks on.
///
///     caller → function i of ours → before(…) → the function whose address stood there
///            ← its result         ← after(…)  ←
///
/// Nothing of it can be seen from Python: no object, no attribute and no name is another, no frame
/// is made, and the caller gets the result that it would have got. The arguments are those of any
/// function with up to four words: each of the interpreter's conventions has no more.
namespace troupe::worker {

inline constexpr std::size_t exchanged_max = 64;

struct arguments {
  void* word[4];
};

struct observer {
  /// Its answer is given to `after`.
  std::intptr_t (*before)(const observer& self, const arguments& with) = nullptr;
  /// Answers what the caller gets: the result, but for an error that must be passed on.
  void* (*after)(const observer& self, const arguments& with, std::intptr_t from_before,
                 void* result) = nullptr;
  std::uint32_t first = 0, second = 0; ///< for the two above
  std::intptr_t more = 0;
};

/// False if the memory cannot be written to, or if there are too many. With the interpreter's lock.
bool exchange(void** word, const observer& by);
/// The word holds again what it held, unless another has changed it since.
void change_back(void** word);

} // namespace troupe::worker
