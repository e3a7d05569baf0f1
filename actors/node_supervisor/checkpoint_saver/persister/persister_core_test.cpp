#include "actors/node_supervisor/checkpoint_saver/persister/persister_core.hpp"

#include "actors/limits.hpp"
#include "ckpt/limits.hpp"
#include "tests/actors/vocabulary.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

/// What local rank 0 or 1 of node a, ranks 0 and 1 of 2, wants written.
ckpt::persist_request snapshot(local_rank local, const saving& s = {}, std::uint64_t sequence = 1) {
  ckpt::persist_request i;
  i.local = i.rank = local;
  i.slot = sequence % 8;
  i.sequence = sequence;
  i.step = s.step;
  i.made_by = generation{s.g};
  i.save = s.step;
  i.world_size = s.shards;
  i.bytes = local + 1;
  i.to.place = "/ckpt";
  i.to.directory = std::to_string(s.step);
  i.to.file = "rank_" + std::to_string(local) + ".pt";
  i.to.shard = local;
  i.to.shards = s.shards;
  i.to.keep.keep_latest = 3;
  i.to.save_within = 600s;
  return i;
}

struct story {
  // The host.
  std::string requests(const ckpt::persist_request& i) {
    return text(core.persist_requested(now, i));
  }
  std::string wrote(const ckpt::persist_request& i) {
    return text(core.written(now, i, ports::receipt{i.bytes, 0}));
  }
  std::string could_not_write(const ckpt::persist_request& i) {
    return text(core.written(now, i, failure(errc::unavailable, "no space left on device")));
  }
  std::string completed(const saving& s = {}, std::vector<std::string> warnings = {},
                        bool shared = false) {
    const auto effects = core.committed(now, {"/ckpt", s.step, generation{s.g}, s.step},
                                        ckpt::completed{std::move(warnings), shared});
    said = notes(effects);
    return text(effects);
  }
  std::string could_not_complete() {
    return text(core.committed(now, {"/ckpt", 100, generation{1}, 100},
                               failure(errc::refused, "read-only file system")));
  }
  std::string looked(std::uint64_t question) { return text(core.looked(now, question)); }

  // The master.
  std::string hears(const messages::msg<messages::CommitStep>& m) {
    return text(core.commit_step(now, m));
  }
  std::string hears(const messages::msg<messages::StepFinalized>& m) {
    const auto effects = core.step_finalized(now, m);
    said = notes(effects);
    return text(effects);
  }
  std::string links() { return text(core.linked(now)); }

  std::string drains(std::uint64_t question) { return text(core.drain(now, question)); }
  std::string waits(duration d) {
    now += d;
    const auto effects = core.tick(now);
    said = notes(effects);
    return text(effects);
  }
  void writes(const ckpt::persist_request& i) {
    requests(i);
    wrote(i);
  }

  persister_core core{"a", messages::author("a/persister")};
  instant now = dawn;
  std::string said;
};

const saving alone{100, 1, 1};

} // namespace

TEST_SUITE("persister_core: an image") {
  TEST_CASE("is written, reported, completed and finalized") {
    story s;
    CHECK(s.core.in_words() == "nothing is to be written");
    CHECK(s.requests(snapshot(0)) == "write g1 step 100 rank 0");
    CHECK(s.requests(snapshot(1)) == "write g1 step 100 rank 1");
    CHECK(s.core.in_words() == "2 image(s) to be written, 0 to be finalized");
    CHECK(s.wrote(snapshot(0)) == "report ShardReport g1 a step 100 shard 0 of 2: rank_0.pt");
    CHECK(s.wrote(snapshot(1)) == "report ShardReport g1 a step 100 shard 1 of 2: rank_1.pt");
    CHECK(s.hears(commit_step({"a", "a"})) ==
          "commit step 100 in /ckpt/100: ddp of 2 ranks, 2 files");
    CHECK(s.completed() == "report StepCommitted g1 a step 100 complete");
    CHECK(s.hears(step_finalized(true)) == lines("retain 3 in /ckpt behind save 100 of g1",
                                                 "finalize g1 step 100 rank 0: complete",
                                                 "finalize g1 step 100 rank 1: complete"));
    CHECK(s.said == "step 100 is complete at /ckpt");
    CHECK(s.core.in_words() == "nothing is to be written");
    CHECK_FALSE(s.core.next_wakeup());
  }

  TEST_CASE("whose commit has something to tell a person, tells it, and is complete") {
    story s;
    s.writes(snapshot(0));
    s.hears(commit_step({"a"}));
    CHECK(s.completed({}, {"'latest' names step 5000", "a step could not be removed"}) ==
          "report StepCommitted g1 a step 100 complete");
    CHECK(s.said == lines("/ckpt: 'latest' names step 5000", "/ckpt: a step could not be removed"));
  }

  TEST_CASE("that is told twice is written once") {
    story s;
    s.requests(snapshot(0));
    CHECK(s.requests(snapshot(0)) == "");
    s.wrote(snapshot(0));
    CHECK(s.wrote(snapshot(0)) == "");
  }

  TEST_CASE(
      "that could not be written is reported with the reason, and finalized when it is told") {
    story s;
    s.requests(snapshot(0));
    CHECK(s.could_not_write(snapshot(0)) ==
          "report ShardReport g1 a step 100 shard 0 of 2: failed: no space left on device");
    CHECK(s.hears(step_finalized(false)) ==
          lines("retain 3 in /ckpt, saves before 101 of g1 have ended",
                "finalize g1 step 100 rank 0: a shard is missing"));
    CHECK(s.said == "step 100 is not complete at /ckpt: a shard is missing");
  }

  TEST_CASE("that is being written when its step ends is finalized once it is written") {
    story s;
    s.writes(snapshot(0));
    s.requests(snapshot(1));
    CHECK(s.hears(step_finalized(false)) ==
          lines("retain 3 in /ckpt, saves before 101 of g1 have ended",
                "finalize g1 step 100 rank 0: a shard is missing"));
    CHECK(s.wrote(snapshot(1)) == "report ShardReport g1 a step 100 shard 1 of 2: rank_1.pt");
    CHECK(s.hears(step_finalized(false)) ==
          lines("retain 3 in /ckpt, saves before 101 of g1 have ended",
                "finalize g1 step 100 rank 1: a shard is missing"));
  }

  TEST_CASE("another node tells that the step is complete: one line for a closer look") {
    story s;
    s.writes(snapshot(0));
    s.hears(commit_step({"b", "a"}, true));
    s.completed();
    CHECK(s.hears(step_finalized(true)) == lines("retain 3 in /ckpt behind save 100 of g1",
                                                 "finalize g1 step 100 rank 0: complete"));
    CHECK(s.said == "step 100 is complete at /ckpt");
    CHECK(s.hears(step_finalized(true)) == "");
  }

  TEST_CASE("one too many is finalized at once") {
    story s;
    for (std::uint64_t i = 0; i < limits::persist_requests_max; ++i)
      CHECK(s.requests(snapshot(0, {100, 1, 2}, i)) != "");
    CHECK(s.requests(snapshot(1)) ==
          "finalize g1 step 100 rank 1: step 100 of rank 1 is not written: 4096 "
          "others are waiting on node a");
  }
}

TEST_SUITE("persister_core: completing a step") {
  TEST_CASE("after another node it says so to the host") {
    story s;
    s.writes(snapshot(0));
    CHECK(s.hears(commit_step({"b", "a"}, true)) ==
          "commit step 100 in /ckpt/100: ddp of 2 ranks, 2 files");
  }

  TEST_CASE("it passes on that another node has completed it in the same directory") {
    story s;
    s.writes(snapshot(0));
    s.hears(commit_step({"b", "a"}, true));
    CHECK(s.completed({}, {}, true) == "report StepCommitted g1 a step 100 complete, shared");
    CHECK(s.links() == lines("report ShardReport g1 a step 100 shard 0 of 2: rank_0.pt",
                             "report StepCommitted g1 a step 100 complete, shared"));
  }

  TEST_CASE("asked again it does it once, and says again what came of it") {
    story s;
    s.writes(snapshot(0));
    s.hears(commit_step({"a", "b"}));
    CHECK(s.hears(commit_step({"a", "b"})) == "");
    s.completed();
    CHECK(s.hears(commit_step({"a", "b"})) == "report StepCommitted g1 a step 100 complete");
  }

  TEST_CASE("what failed is tried again when it is asked again") {
    story s;
    s.writes(snapshot(0));
    s.hears(commit_step({"a", "b"}));
    CHECK(s.could_not_complete() ==
          "report StepCommitted g1 a step 100 not: read-only file system");
    CHECK(s.hears(commit_step({"a", "b"})) ==
          "commit step 100 in /ckpt/100: ddp of 2 ranks, 2 files");
  }

  TEST_CASE("of a step that it has no image of it knows nothing") {
    story s;
    CHECK(s.hears(commit_step({"a", "b"})) == "");
    CHECK(s.completed() == "");
    CHECK(s.hears(step_finalized(true)) == "");
    s.writes(snapshot(0, {100, 2, 2}));
    CHECK(s.hears(commit_step({"a", "b"})) == "");
  }
}

TEST_SUITE("persister_core: what need not be kept") {
  TEST_CASE(
      "is not what a save has written that is open here, whatever a new master has heard of") {
    story s;
    s.writes(snapshot(0, {98, 1, 2}));
    s.writes(snapshot(0, {99, 1, 2}, 2));
    s.requests(snapshot(0, {100, 1, 2}, 3));
    s.could_not_write(snapshot(0, {100, 1, 2}, 3));
    CHECK(s.hears(step_finalized(false)).find("retain 3 in /ckpt, saves before 98 of g1") == 0);
  }

  TEST_CASE("goes once a step is complete at all nodes, by its rules and the oldest open save") {
    story s;
    s.writes(snapshot(0, {100, 2, 2}));
    s.writes(snapshot(1, {100, 2, 2}));
    const saving in_order{100, 2, 2, 98};
    CHECK(s.hears(commit_step({"a", "a"}, false, in_order)) ==
          "commit step 100 in /ckpt/100: ddp of 2 ranks, 2 files");
    CHECK(s.completed(in_order) == "report StepCommitted g2 a step 100 complete");
    CHECK(s.hears(step_finalized(true, in_order)) ==
          lines("retain 3 in /ckpt behind save 100 of g2, save 98 is open",
                "finalize g2 step 100 rank 0: complete", "finalize g2 step 100 rank 1: complete"));
    CHECK(s.hears(step_finalized(true, in_order)) == "");
  }

  TEST_CASE("stays if it is not, but for what that save has left") {
    story s;
    s.writes(snapshot(0));
    s.hears(commit_step({"a", "b"}));
    s.completed();
    CHECK(s.hears(step_finalized(false)) ==
          lines("retain 3 in /ckpt, saves before 101 of g1 have ended",
                "finalize g1 step 100 rank 0: a shard is missing"));
  }

  TEST_CASE("goes also where this node has not completed the step itself") {
    story s;
    s.writes(snapshot(0));
    CHECK(s.hears(step_finalized(true)) == lines("retain 3 in /ckpt behind save 100 of g1",
                                                 "finalize g1 step 100 rank 0: complete"));
  }
}

TEST_SUITE("persister_core: what is lost on the way") {
  TEST_CASE("on a new link it says again what is not finalized") {
    story s;
    CHECK(s.links() == "");
    s.writes(snapshot(0));
    s.requests(snapshot(1));
    CHECK(s.links() == "report ShardReport g1 a step 100 shard 0 of 2: rank_0.pt");
    s.could_not_write(snapshot(1));
    s.hears(commit_step({"a", "b"}));
    s.completed();
    CHECK(s.links() ==
          lines("report ShardReport g1 a step 100 shard 0 of 2: rank_0.pt",
                "report ShardReport g1 a step 100 shard 1 of 2: failed: no space left on device",
                "report StepCommitted g1 a step 100 complete"));
    s.hears(step_finalized(true));
    CHECK(s.links() == "");
  }

  TEST_CASE("a master that never answers is not waited for without end") {
    story s;
    s.writes(snapshot(0));
    const auto patience = 2 * 600s + limits::commit_within;
    CHECK(s.waits(patience - 1ms) == "");
    CHECK(s.waits(1ms) == "finalize g1 step 100 rank 0: step 100 of rank 0 is not known to be "
                          "complete: the master did not answer");
    CHECK(s.said != "");
    CHECK(s.links() == "");
    CHECK_FALSE(s.core.next_wakeup());
  }

  TEST_CASE("a process that asks for a second, or for a year, gets what is sensible") {
    story s;
    auto brief = snapshot(0), long_lasting = snapshot(1);
    brief.to.save_within = {};
    long_lasting.to.save_within = 9'000h;
    s.requests(brief);
    CHECK(s.core.next_wakeup() == dawn + 2 * limits::save_within_min);
    s.wrote(brief);
    s.hears(step_finalized(true));
    s.requests(long_lasting);
    CHECK(s.core.next_wakeup() == dawn + 2 * limits::save_within_max);
  }
}

TEST_SUITE("persister_core: draining") {
  TEST_CASE("is answered at once when nothing is requested") {
    story s;
    CHECK(s.drains(1) == "look 1");
    CHECK(s.looked(1) == "drained 1");
  }

  TEST_CASE("is answered when everything that was requested is finalized") {
    story s;
    s.requests(snapshot(0, alone));
    s.drains(1);
    s.drains(2);
    CHECK(s.looked(1) == "");
    s.wrote(snapshot(0, alone));
    CHECK(s.hears(step_finalized(true)) == lines("retain 3 in /ckpt behind save 100 of g1",
                                                 "finalize g1 step 100 rank 0: complete",
                                                 "drained 1"));
    CHECK(s.looked(2) == "drained 2");
  }

  TEST_CASE("does not wait for what is never written, nor for a master that is gone") {
    story s;
    s.requests(snapshot(0));
    s.drains(1);
    s.looked(1);
    CHECK(s.waits(1200s) == "drained 1");
    CHECK(s.said == "step 100 of rank 0 is still being written to /ckpt, 20 min after it was "
                    "requested");
    CHECK_FALSE(s.core.next_wakeup());
    CHECK(s.wrote(snapshot(0)) == "report ShardReport g1 a step 100 shard 0 of 2: rank_0.pt");
    s.drains(2);
    CHECK(s.looked(2) == "");
    CHECK(s.waits(2h) == lines("finalize g1 step 100 rank 0: step 100 of rank 0 is not known to be "
                               "complete: the master did not answer",
                               "drained 2"));
  }
}
