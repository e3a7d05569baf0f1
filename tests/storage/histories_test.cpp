// What a run finds in a directory that many hands have written to, and leaves there.
//
// A history is made by a seed: runs of ours that follow each other or begin anew, each on a machine
// with a clock of its own, and all that people and other tools do to a directory. Then one more run
// loads, saves and removes what its rule lets it. Whatever the history was:
//
// - what lies there whole is found, and is read as it was saved;
// - the newest of it is taken, or a line says of what is newer why not;
// - nothing that another run, another tool or a person has made is changed or removed;
// - the run ends with its own newest step, which the next one finds;
// - to read needs no right to write.
#include "tests/rounds.hpp"
#include "tests/storage/history.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

using namespace troupe;
using namespace troupe::ckpt;
using histories::history;

namespace {

/// One that has failed, by TROUPE_HISTORY=<seed>.
bool is_chosen(std::uint64_t seed) {
  const char* only = std::getenv("TROUPE_HISTORY");
  return only == nullptr || std::to_string(seed) == only;
}

template<class Ground>
void play(std::uint64_t seed) {
  if (!is_chosen(seed))
    return;
  INFO("replay: TROUPE_HISTORY=", seed, " build/release/tests/storage_test -tc='histories*'");
  Ground at;
  history one(at, seed);
  if (seed % 2 == 0)
    at.put_odd_entries();
  one.make();
  one.check();
}

} // namespace

TEST_CASE("histories: whatever was there, it is found, told and left as it is") {
  for (std::uint64_t seed = 1; seed <= rounds(1'500); ++seed)
    play<testing::memory_ground>(seed);
}

TEST_CASE("histories: the same in a directory of a file system") {
  for (std::uint64_t seed = 10'001; seed <= 10'000 + rounds(40); ++seed)
    play<testing::real_ground>(seed);
}
