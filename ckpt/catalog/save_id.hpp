#pragma once

#include "runtime/base/ids.hpp"

#include <cstdint>
#include <tuple>

namespace troupe::ckpt {

/// Which save a state is of, and with that its place in the one order of all states: in memory, at
/// other nodes and on every disk ([ADR 20](docs/adr/0020-one-order-of-saves.md)).
///
/// A step's number does not order states: a job that goes back to step 50 saves 60 after 100. A
/// counter of each directory does not either: directories of several nodes have counted
/// differently. So the ranks, which all take part in every save, number it alike before anything
/// is written.
///
/// - `made_by` holds the term of a master (runtime/base/generations.hpp). So whatever a later
///   master's job saves is newer than what an earlier one's did, also at another node or in another
///   directory, and the isolated side of a cut is the older one.
/// - `number` counts the saves of a generation from 1, above the bits of ckpt/arena/place_id.hpp. 0
///   is in no save: whatever says it was made before saves were numbered.
struct save_id {
  generation made_by;
  std::uint64_t number = 0;

  friend bool operator<(const save_id& a, const save_id& b) {
    return std::tie(a.made_by, a.number) < std::tie(b.made_by, b.number);
  }
  friend bool operator==(const save_id& a, const save_id& b) {
    return std::tie(a.made_by, a.number) == std::tie(b.made_by, b.number);
  }
  friend bool operator!=(const save_id& a, const save_id& b) { return !(a == b); }
};

/// Where training has come back to, so that it makes the later steps anew.
struct resume_point {
  std::uint64_t step = 0;
  std::uint64_t after = 0; ///< number of the last save of its generation before that
};

} // namespace troupe::ckpt
