#include "actors/node_supervisor/checkpoint_saver/replicator/replicator_core.hpp"

#include "ckpt/limits.hpp"
#include "tests/actors/vocabulary.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

/// What local rank 0 or 1 of node a, ranks 0 and 1, wants held by others: ranks of two nodes.
ckpt::snapshot_to_copy snapshot(local_rank local, std::uint64_t sequence = 1) {
  ckpt::snapshot_to_copy i;
  i.local = i.rank = local;
  i.slot = sequence % 8;
  i.sequence = sequence;
  i.step = 100;
  i.made_by = generation{1};
  i.by.members = {{0, "a:1"}, {2, "b:1"}};
  i.by.parity = 1;
  return i;
}

struct story {
  std::string requests(const ckpt::snapshot_to_copy& i) {
    return text(core.copies_requested(dawn, i));
  }
  std::string copied(const ckpt::snapshot_to_copy& i, const result<void>& how) {
    const auto effects = core.copied(dawn, i, how);
    said = notes(effects);
    return text(effects);
  }

  replicator_core core{"a"};
  std::string said;
};

} // namespace

TEST_SUITE("replicator_core") {
  TEST_CASE("copies are made and finalized, and nothing is said of those that are held") {
    story s;
    CHECK(s.core.in_words() == "nothing is to be replicated");
    CHECK(s.requests(snapshot(0)) == "copy g1 step 100 rank 0 to 1 others");
    CHECK(s.requests(snapshot(1)) == "copy g1 step 100 rank 1 to 1 others");
    CHECK(s.core.in_words() == "2 snapshot(s) being copied to other nodes");
    CHECK(s.copied(snapshot(0), {}) == "finalize g1 step 100 rank 0: held by others");
    CHECK(s.copied(snapshot(1), {}) == "finalize g1 step 100 rank 1: held by others");
    CHECK(s.said == "");
    CHECK(s.core.in_words() == "nothing is to be replicated");
  }

  TEST_CASE("copies that fail are not tried again, and the reason is said") {
    story s;
    s.requests(snapshot(0));
    CHECK(
        s.copied(snapshot(0), failure(errc::closed, "rank 2 at b:1: the connection was closed")) ==
        "finalize g1 step 100 rank 0: rank 2 at b:1: the connection was closed");
    CHECK(s.said == "step 100 of rank 0 is not held by other nodes: rank 2 at b:1: the connection "
                    "was closed");
    CHECK(s.core.in_words() == "nothing is to be replicated");
  }

  TEST_CASE("a request that is told twice is answered once") {
    story s;
    s.requests(snapshot(0));
    CHECK(s.requests(snapshot(0)) == "");
    s.copied(snapshot(0), {});
    CHECK(s.copied(snapshot(0), {}) == "");
  }

  TEST_CASE("the next snapshot in the same slot is another one") {
    story s;
    s.requests(snapshot(0, 1));
    CHECK(s.requests(snapshot(0, 9)) == "copy g1 step 100 rank 0 to 1 others");
  }

  TEST_CASE("one too many is finalized at once") {
    story s;
    for (std::uint64_t i = 1; i <= limits::persist_requests_max; ++i)
      CHECK(s.requests(snapshot(0, i)) != "");
    CHECK(s.requests(snapshot(1)) ==
          fmt::format("finalize g1 step 100 rank 1: step 100 of rank 1 is not copied: {} other "
                      "snapshots of node a are being copied",
                      limits::persist_requests_max));
  }
}
