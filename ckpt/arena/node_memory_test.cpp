#include "ckpt/arena/node_memory.hpp"

#include "ckpt/limits.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>

using namespace troupe;
using namespace troupe::ckpt;

namespace {

constexpr std::uint64_t mib = 1u << 20, snapshot = 512 * mib;
constexpr auto free_anyway = limits::memory_headroom_min;

/// A node whose ranks have opened their memory. In these tests nothing but them uses any.
struct node {
  explicit node(std::size_t ranks, std::uint64_t all) : room(all) {
    n.ranks.resize(ranks);
    for (auto& r : n.ranks)
      r.opened = true;
  }
  memory_answer ask(std::size_t rank, std::uint64_t more, bool may_raise = false,
                    bool may_wait = true) {
    return decide(n, room, {rank, more, may_raise, may_wait});
  }
  memory_answer declare(std::size_t rank, std::uint64_t bytes = snapshot, std::uint32_t wanted = 2,
                        std::uint64_t mapped = 0) {
    n.ranks[rank].snapshot = bytes;
    n.ranks[rank].wanted = wanted;
    n.ranks[rank].mapped = mapped;
    return ask(rank, 0);
  }
  /// The rank touches what it was granted.
  void touch(std::size_t rank, std::uint64_t bytes) {
    REQUIRE(bytes <= room); // else the kernel kills
    n.ranks[rank].backed += bytes;
    n.ranks[rank].in_transit = 0;
    room -= bytes;
  }
  /// It has touched it, and has not said so yet.
  void touch_silently(std::size_t rank, std::uint64_t bytes) {
    n.ranks[rank].in_transit = bytes;
    room -= bytes;
  }
  void give_back(std::size_t rank, std::uint64_t bytes) {
    n.ranks[rank].backed -= bytes;
    room += bytes;
  }
  node_memory n;
  std::uint64_t room;
};

std::uint64_t room_for(std::uint64_t halves, std::size_t ranks) {
  const auto exact = halves * snapshot / 2 * ranks;
  return exact + exact / (limits::memory_headroom_divisor - 1) + free_anyway;
}

} // namespace

TEST_CASE("as many snapshots of each rank are kept as fit for all, whichever rank asks first") {
  struct {
    std::uint64_t halves;
    std::uint32_t wanted, kept;
  } const table[] = {{1, 2, 0}, {2, 2, 1}, {3, 2, 1}, {4, 2, 2}, {6, 2, 2}, {6, 3, 3}, {7, 4, 3}};
  for (const auto& row : table) {
    CAPTURE(row.halves);
    node n(4, room_for(row.halves, 4));
    const auto first = n.declare(2, snapshot, row.wanted);
    CHECK(first.planned);
    CHECK(n.n.kept == row.kept);
    CHECK((first.verdict == memory_verdict::granted) == (row.kept > 0));
    if (row.kept == 0) {
      CHECK(first.needed == 4 * snapshot);
      CHECK(first.there < 4 * snapshot);
    }
    // Whatever the order, each rank then gets what was planned for it.
    for (std::uint32_t turn = 0; turn < row.kept; ++turn)
      for (const std::size_t rank : {3, 0, 1, 2}) {
        CHECK(n.declare(rank, snapshot, row.wanted).verdict == memory_verdict::granted);
        CHECK(n.ask(rank, snapshot).verdict == memory_verdict::granted);
        n.touch(rank, snapshot);
      }
    CHECK(n.n.kept == row.kept);
  }
}

TEST_CASE("what others touch just now and have not said changes no decision") {
  node n(4, room_for(2, 4));
  for (std::size_t rank = 0; rank < 4; ++rank) {
    CHECK(n.declare(rank).verdict == memory_verdict::granted);
    CHECK(n.ask(rank, snapshot).verdict == memory_verdict::granted);
    n.touch_silently(rank, snapshot);
  }
  CHECK(n.n.kept == 1);
}

TEST_CASE("a rank whose snapshots are larger than the others' lowers what all keep") {
  node n(2, room_for(4, 2));
  REQUIRE(n.declare(0).verdict == memory_verdict::granted);
  REQUIRE(n.n.kept == 2);
  REQUIRE(n.ask(0, 2 * snapshot).verdict == memory_verdict::granted);
  n.touch(0, 2 * snapshot);
  CHECK(n.declare(1, 3 * snapshot).verdict == memory_verdict::granted);
  CHECK(n.n.kept == 1);
  SUBCASE("what it needs is there only when the first has given its second back") {
    CHECK(n.ask(1, 3 * snapshot).verdict == memory_verdict::wait);
    CHECK(n.ask(1, 3 * snapshot, false, false).verdict == memory_verdict::refused);
    n.give_back(0, snapshot);
    CHECK(n.ask(1, 3 * snapshot).verdict == memory_verdict::granted);
    n.touch(1, 3 * snapshot);
  }
}

TEST_CASE("as long as it is not known what others have touched, a larger one waits") {
  node n(2, room_for(5, 2));
  REQUIRE(n.declare(0).verdict == memory_verdict::granted);
  REQUIRE(n.ask(0, 2 * snapshot).verdict == memory_verdict::granted);
  n.touch_silently(0, 2 * snapshot);
  CHECK(n.declare(1, snapshot + snapshot / 4).verdict == memory_verdict::wait);
  CHECK(n.n.kept == 2);
  n.n.ranks[0].backed = 2 * snapshot;
  n.n.ranks[0].in_transit = 0;
  CHECK(n.declare(1, snapshot + snapshot / 4).verdict == memory_verdict::granted);
  CHECK(n.n.kept == 2);
}

TEST_CASE("training that has grown leaves less: all keep one, and none is promised what is gone") {
  node n(4, room_for(4, 4));
  for (std::size_t rank = 0; rank < 4; ++rank) {
    n.declare(rank);
    REQUIRE(n.ask(rank, snapshot).verdict == memory_verdict::granted);
    n.touch(rank, snapshot);
  }
  REQUIRE(n.n.kept == 2);
  n.room -= 2 * snapshot;
  CHECK(n.ask(1, snapshot).verdict == memory_verdict::granted); // beyond the one that is kept
  CHECK(n.n.kept == 1);
  n.touch(1, snapshot);
  REQUIRE(n.ask(2, snapshot).verdict == memory_verdict::granted);
  n.touch(2, snapshot);
  CHECK(n.ask(3, snapshot, false, false).verdict == memory_verdict::refused);
}

TEST_CASE("more than is kept, while the disk is slow, is had only if it is there") {
  node n(2, room_for(5, 2));
  for (std::size_t rank = 0; rank < 2; ++rank) {
    n.declare(rank);
    REQUIRE(n.ask(rank, 2 * snapshot).verdict == memory_verdict::granted);
    n.touch(rank, 2 * snapshot);
  }
  CHECK(n.ask(0, snapshot).verdict == memory_verdict::granted);
  n.touch(0, snapshot);
  const auto another = n.ask(1, snapshot, false, false);
  CHECK(another.verdict == memory_verdict::refused);
  CHECK(another.needed == snapshot);
  CHECK(n.n.kept == 2);
}

TEST_CASE("memory that loaded tensors hold is not there for snapshots, until they let it go") {
  node n(2, room_for(5, 2));
  for (std::size_t rank = 0; rank < 2; ++rank) {
    n.declare(rank);
    REQUIRE(n.ask(rank, 2 * snapshot).verdict == memory_verdict::granted);
    n.touch(rank, 2 * snapshot);
  }
  // The next life has loaded one of its two.
  CHECK(n.declare(0, snapshot, 2, snapshot).verdict == memory_verdict::granted);
  CHECK(n.n.kept == 2);
  CHECK(n.declare(1, snapshot, 2, snapshot).verdict == memory_verdict::granted);
  CHECK(n.n.kept == 1);
  n.declare(0);
  CHECK(n.n.kept == 1); // the other's is still held
  n.n.ranks[1].mapped = 0;
  CHECK(n.ask(1, 0, true).verdict == memory_verdict::granted);
  CHECK(n.n.kept == 2);
}

TEST_CASE("replicas get what no rank was promised") {
  node n(2, room_for(4, 2));
  CHECK(room_for_replicas(n.n, n.room) > 2 * snapshot); // none has declared anything
  n.declare(0);
  REQUIRE(n.n.kept == 2);
  CHECK(room_for_replicas(n.n, n.room) <= free_anyway);
  node more(2, room_for(6, 2));
  more.declare(0);
  const auto left = room_for_replicas(more.n, more.room);
  CHECK(left >= snapshot);
  more.n.replicas_reserved = left;
  CHECK(room_for_replicas(more.n, more.room) == 0);
  more.n.replicas_backed = left;
  more.room -= left;
  CHECK(room_for_replicas(more.n, more.room) == 0);
  CHECK(more.declare(1).verdict == memory_verdict::granted);
  CHECK(more.n.kept == 2);
}

TEST_CASE("sizes that no machine has are refused, and nothing overflows") {
  node n(64, room_for(4, 4));
  const auto a = n.declare(0, std::numeric_limits<std::uint64_t>::max(), 4);
  CHECK(a.verdict == memory_verdict::refused);
  CHECK(a.needed == std::numeric_limits<std::uint64_t>::max());
  CHECK(n.declare(0, mib).verdict == memory_verdict::granted); // and what fits is had again
}

TEST_CASE("one line says what is kept") {
  CHECK(kept_line(1, 2, 8 * snapshot, 5 * snapshot, "memory.max is 4096 MiB") ==
        "memory for one snapshot per rank only: 4097 MiB wanted, 2560 MiB there (memory.max is "
        "4096 MiB); a rank that dies while it saves falls back to the checkpoint on disk");
  CHECK(kept_line(2, 3, 3 * mib, 2 * mib, "x").find("memory for 2 snapshots per rank, not for 3") ==
        0);
  CHECK(kept_line(2, 2, 0, 0, "") == "memory for 2 snapshots per rank again");
}

TEST_CASE("memory is ample where another launcher may be granted as much by the same free memory") {
  node wide(1, 16 * snapshot), narrow(1, 3 * snapshot);
  for (auto* n : {&wide, &narrow}) {
    REQUIRE(n->declare(0).verdict == memory_verdict::granted);
    const auto answer = n->ask(0, snapshot);
    REQUIRE(answer.verdict == memory_verdict::granted);
    CHECK(answer.ample == (n == &wide));
  }
}
