#include "tests/actors/node_stage.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

/// Two local ranks that are training processes 0 and 1 of two.
struct saving_node : node_stage {
  saving_node() : node_stage("a") {
    begin();
    runs();
  }

  void requests(local_rank local) {
    ckpt::persist_request i;
    i.local = i.rank = i.to.shard = local;
    i.sequence = 1;
    i.step = 100;
    i.made_by = generation{1};
    i.save = 100;
    i.world_size = i.to.shards = 2;
    i.to.place = "/ckpt";
    i.to.directory = "100";
    i.to.file = "rank_" + std::to_string(local) + ".pt";
    i.to.save_within = 600s;
    checkpoints->request_persist(i);
    settle();
  }
  void is_written() {
    checkpoints->write_ends(ports::receipt{1, 0});
    settle();
  }
  void is_committed() {
    checkpoints->commit_ends(ckpt::completed{});
    settle();
  }
  void workers_finish() {
    ends("g1/0", exited(0));
    ends("g1/1", exited(0));
  }
};

const std::string shard_0 = "ShardReport g1 a step 100 shard 0 of 2: rank_0.pt";
const std::string shard_1 = "ShardReport g1 a step 100 shard 1 of 2: rank_1.pt";

} // namespace

/// What becomes of snapshots that a node's training processes want written.
TEST_SUITE("node: saving") {
  TEST_CASE("images are written, the master hears of each, and settles them") {
    saving_node s;
    s.requests(0);
    s.requests(1);
    CHECK(s.checkpoints->writing() == 2);
    CHECK(s.hears() == "");
    s.is_written();
    CHECK(s.hears() == shard_0);
    s.is_written();
    CHECK(s.hears() == shard_1);
    s.says(commit_step({"a", "a"}).any());
    CHECK(s.checkpoints->committing() == 1);
    s.is_committed();
    CHECK(s.hears() == "StepCommitted g1 a step 100 complete");
    s.says(step_finalized(true).any());
    CHECK(s.checkpoints->finalized ==
          std::vector<std::string>{"rank 0: complete", "rank 1: complete"});
    CHECK(s.checkpoints->retained == std::vector<std::string>{"100 with saves from 101 open"});
    CHECK(s.was_said("persister: step 100 is complete at /ckpt"));
  }

  TEST_CASE("a new link, to whatever master, brings all of it again that is not finalized") {
    saving_node s;
    s.requests(0);
    s.is_written();
    s.says(commit_step({"a", "b"}).any());
    s.is_committed();
    s.hears();
    s.link->breaks();
    s.pass(200ms);
    s.accept();
    CHECK(s.hears() == "");
    s.welcomes();
    CHECK(s.hears() == lines(shard_0, "StepCommitted g1 a step 100 complete"));
  }

  TEST_CASE("a saver that crashes hears of the images again, and writes them again") {
    saving_node s;
    s.requests(0);
    s.is_written();
    s.hears();
    s.crash(s.at.persister);
    CHECK(s.checkpoints->writing() == 1);
    s.is_written();
    CHECK(s.hears() == shard_0);
    CHECK(s.processes->take_deeds() == "");
  }

  TEST_CASE("workers that have saved and ended are not finished before their step is complete") {
    saving_node s;
    s.requests(0);
    s.requests(1);
    s.workers_finish();
    CHECK(s.hears() == "");
    s.is_written();
    s.is_written();
    CHECK(s.hears() == lines(shard_0, shard_1));
    s.says(step_finalized(true).any());
    CHECK(s.hears() == "Finished g1 a");
  }

  TEST_CASE("nor if their saver crashes meanwhile, and a hello says that they run") {
    saving_node s;
    s.requests(0);
    s.workers_finish();
    s.crash(s.at.persister);
    s.checkpoints->write_ends(failure(errc::closed, "connection refused"));
    s.pass(1s);
    CHECK(s.hears() == "");
    s.link->breaks();
    s.pass(200ms);
    CHECK(s.accept() == "Hello a running g1");
    s.welcomes();
    s.is_written();
    CHECK(s.hears() == shard_0);
    s.says(step_finalized(true).any());
    CHECK(s.hears() == "Finished g1 a");
  }

  TEST_CASE("nor for ever: a master that does not answer is given up") {
    saving_node s;
    s.requests(0);
    s.workers_finish();
    s.is_written();
    s.hears();
    s.pass(1h);
    CHECK(s.hears() == "Finished g1 a");
    CHECK(s.checkpoints->finalized.size() == 1);
  }
}
