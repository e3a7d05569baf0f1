#include "messages/text.hpp"
#include "runtime/sup/shell.hpp"
#include "tests/actors/master_stage.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

/// The master's actors together: what a node on the other end of a link gets to hear.
TEST_SUITE("master: one job") {
  TEST_CASE("from two hellos to success") {
    master_stage s;
    s.begin();
    REQUIRE(s.listening.size() == 1);
    CHECK(s.listening[0].port == 29400);
    s.join("a");
    CHECK(s.hears("a") == "Welcome() (job = \"job\", beatEveryMs = 250)");
    s.join("b");
    CHECK(s.hears("a") == "Prepare g1: a(0,1) of 4 on 2 nodes");
    CHECK(s.hears("b") == lines("Welcome() (job = \"job\", beatEveryMs = 250)",
                                "Prepare g1: b(2,3) of 4 on 2 nodes"));
    s.says("b", prepared("b", 1).any());
    CHECK(s.hears("b") == "");
    s.says("a", prepared("a", 1, 4000).any());
    CHECK(s.hears("a") == lines("Start g1, store a.lan:4000", "RankOwners g1 of 2 nodes"));
    CHECK(s.hears("b") == lines("Start g1, store a.lan:4000", "RankOwners g1 of 2 nodes"));
    s.says("a", running("a", 1).any());
    s.says("b", running("b", 1).any());
    CHECK(s.was_said("master/recovery: all workers are started"));
    s.says("a", finished("a", 1).any());
    CHECK(s.verdicts.empty());
    s.says("b", finished("b", 1).any());
    CHECK(s.hears("a") == "Conclude success: every worker finished");
    CHECK(s.hears("b") == "Conclude success: every worker finished");
    REQUIRE(s.verdicts.size() == 1);
    CHECK(s.verdicts[0].success);
    CHECK(s.journalled() == lines("GenerationProposed g1",
                                  "GenerationSealed g1: a(0,1) b(2,3), store a.lan:4000",
                                  "Concluded success: every worker finished"));
  }

  TEST_CASE("everyone has left when the last node has said goodbye") {
    master_stage s;
    s.begin();
    s.join("a");
    s.join("b");
    s.run_two();
    s.says("a", finished("a", 1).any());
    s.says("b", finished("b", 1).any());
    const auto goodbye =
        messages::author("n").write<messages::Goodbye>({}, [](auto b) { b.setReason("done"); });
    s.says("a", goodbye.any());
    CHECK(s.everyone_left == 0);
    s.says("b", goodbye.any());
    CHECK(s.everyone_left == 1);
  }

  TEST_CASE("a worker dies: all stop, the next generation forms, and it is counted") {
    master_stage s;
    s.begin();
    s.join("a");
    s.join("b");
    s.run_two();
    s.says("b", failed("b", 1, {7}).any());
    const std::string cause = "rank 0 (node b, local rank 0, pid 100) failed: exit code 7";
    CHECK(s.hears("a") == "Stop g1: " + cause);
    CHECK(s.hears("b") == "Stop g1: " + cause);
    s.says("b", stopped("b", 1, {7}).any());
    CHECK(s.hears("b") == "");
    s.says("a", stopped("a", 1).any());
    CHECK(s.hears("a") == "Prepare g2: a(0,1) of 4 on 2 nodes, restart 1");
    CHECK(s.hears("b") == "Prepare g2: b(2,3) of 4 on 2 nodes, restart 1");
    s.run_two(2);
    CHECK(s.was_said("master/recovery: the workers run again"));
  }

  TEST_CASE("the verdict of failure names the root cause to everyone") {
    master_stage s(2, 0);
    s.begin();
    s.join("a");
    s.join("b");
    s.run_two();
    s.says("b", failed("b", 1, {7}).any());
    CHECK(s.hears("a").find("Stop g1: rank 0 (node b") == 0);
    s.stop_two();
    CHECK(s.hears("a") ==
          "Conclude failure: rank 0 (node b, local rank 0, pid 100) failed: exit code 7; no "
          "restarts are allowed (--max-restarts 0) [b/0: exit code 7]");
    REQUIRE(s.verdicts.size() == 1);
    CHECK_FALSE(s.verdicts[0].success);
  }

  TEST_CASE("a node whose link breaks is told nothing new when it is back in time") {
    master_stage s;
    s.begin();
    s.join("a");
    s.join("b");
    s.run_two();
    s.links.at("b")->breaks();
    s.pass(2s);
    s.join("b", running_in(1));
    CHECK(s.hears("b") ==
          lines("Welcome() (job = \"job\", beatEveryMs = 250)", "RankOwners g1 of 2 nodes"));
    s.pass(1h);
    CHECK(s.hears("a") == "");
  }

  TEST_CASE("a node that does not come back is lost, for free; its replacement has its ranks") {
    master_stage s(2, 0);
    s.begin();
    s.join("a");
    s.join("b");
    s.run_two();
    s.links.at("a")->breaks();
    s.pass(3s);
    CHECK(s.hears("b").find("Stop g1: node a is lost: ") == 0);
    s.says("b", stopped("b", 1).any());
    s.join("c");
    CHECK(s.hears("b") == "Prepare g2: b(2,3) of 4 on 2 nodes");
  }

  TEST_CASE("a node of another job, and a second node of a rank, are told why they cannot join") {
    master_stage s;
    s.begin();
    auto link =
        s.transport->knock(hello("x", 1, [](messages::Hello::Builder b) { b.setJob("other"); }));
    s.settle();
    CHECK(heard(*link).find("(--rdzv-id)") != std::string::npos);
    CHECK(link->ended() == "the node was refused");
    const auto with_rank = [](messages::Hello::Builder b) { b.setWantedRank(1); };
    s.transport->knock(hello("a", 1, with_rank));
    s.settle();
    link = s.transport->knock(hello("b", 1, with_rank));
    s.settle();
    CHECK(heard(*link).find("node rank 1 is taken by node a (--node-rank)") != std::string::npos);
    CHECK(link->ended());
  }

  TEST_CASE(
      "a node speaks for itself only: else its link is closed and nothing it says is believed") {
    const auto goodbye =
        messages::author("n").write<messages::Goodbye>({}, [](auto b) { b.setReason("done"); });
    const auto blames = [](const node_name& other) {
      return messages::author("b").write<messages::Failed>(generation{1}, [&other](auto f) {
        f.setNode("b");
        auto failure = f.initFailures(1)[0];
        failure.setNode(other);
        failure.setExitCode(201);
      });
    };
    for (const auto& false_word :
         {failed("a", 1, {201}).any(), finished("a", 1).any(), prepared("a", 1, 666).any(),
          running("a", 1).any(), shard_written("a", 0).any(), step_committed("a", true).any(),
          blames("a").any()}) {
      CAPTURE(messages::to_text(false_word));
      master_stage s;
      s.begin();
      s.join("a");
      s.join("b");
      s.run_two();
      s.links.at("b")->arrives(false_word);
      s.links.at("b")->arrives(goodbye.any());
      s.settle();
      CHECK(s.who_lost_its_link() == "b");
      CHECK(s.links.at("b")->ended() == "a node may speak for itself only");
      CHECK(s.was_said("the message is dropped and its link is closed"));
      CHECK(s.hears("a") == "");
      CHECK(s.verdicts.empty());
    }
  }

  TEST_CASE("also in its hello") {
    master_stage s;
    s.begin();
    s.links["b"] = s.transport->knock(hello(
        "b", 1, [](messages::Hello::Builder b) { b.getState().initFailures(1)[0].setNode("a"); }));
    s.settle();
    CHECK(s.who_lost_its_link() == "b");
    CHECK_FALSE(s.was_said("node b is here"));
  }

  TEST_CASE("a peer that is neither a node nor a shell is turned away with one line") {
    struct row {
      std::uint16_t role;
      const char* why;
    };
    for (const auto& r :
         {row{2, "this is the job's master, and no node that holds copies of images"},
          row{77, "the master does not know what role this peer has; it is of a newer version"}}) {
      master_stage s;
      s.begin();
      const auto link = s.transport->knock(hello("x", 1, [&r](messages::Hello::Builder b) {
        b.setRole(static_cast<messages::Hello::Role>(r.role));
      }));
      s.settle();
      CHECK(heard(*link).find("Refused() (reason = \"") == 0);
      CHECK(link->ended() == r.why);
    }
  }

  TEST_CASE("the process that runs the master may end the job") {
    master_stage s;
    s.begin();
    s.join("a");
    sup::post(s.at.recovery, messages::local<messages::Abandon>(
                                 "test", [](auto b) { b.setReason("interrupted"); }));
    s.settle();
    CHECK(s.hears("a").find("Conclude failure: interrupted") != std::string::npos);
    CHECK(s.verdicts.size() == 1);
  }

  TEST_CASE("every message that came in is credited to its link") {
    master_stage s;
    s.begin();
    s.join("a");
    s.join("b");
    s.run_two();
    CHECK(s.links.at("a")->delivered() == 2);
    CHECK(s.links.at("a")->taken_count() == 2);
  }
}

TEST_SUITE("master: the journal") {
  TEST_CASE("nothing is announced before the journal has it") {
    master_stage s;
    s.begin();
    s.join("a");
    s.hears("a");
    s.journal_is_slow = true;
    s.join("b");
    CHECK(s.hears("a") == "");
    s.journal_answers();
    CHECK(s.hears("a") == "Prepare g1: a(0,1) of 4 on 2 nodes");
    s.says("a", prepared("a", 1, 4000).any());
    s.says("b", prepared("b", 1).any());
    CHECK(s.hears("a") == "");
    s.journal_answers();
    CHECK(s.hears("a") == lines("Start g1, store a.lan:4000", "RankOwners g1 of 2 nodes"));
    s.says("a", finished("a", 1).any());
    s.says("b", finished("b", 1).any());
    CHECK(s.verdicts.empty());
    s.journal_answers();
    CHECK(s.verdicts.size() == 1);
  }

  TEST_CASE("what happens while the journal is read back is not lost") {
    master_stage s(1);
    s.journal_is_slow = true;
    s.begin();
    s.join("a");
    CHECK(s.hears("a") == "Welcome() (job = \"job\", beatEveryMs = 250)");
    s.journal_answers();
    s.journal_answers();
    CHECK(s.hears("a") == "Prepare g1: a(0,1) of 2 on 1 node");
  }

  TEST_CASE("a journal that takes no decision ends the master, with a clear error") {
    master_stage s;
    s.begin();
    s.disk.fault = error{errc::refused, "the disk is broken"};
    for (int i = 0; i < 10 && s.endings.empty(); ++i) {
      s.join("a");
      if (s.endings.empty())
        s.join("b");
      s.pass(1s);
    }
    REQUIRE(s.endings.size() == 1);
    REQUIRE(s.endings[0]);
    CHECK(s.endings[0]->what.find("the journal did not take a decision: the disk is broken") !=
          std::string::npos);
    CHECK(s.who_lost_its_link() == "a b");
    CHECK(s.disk.records.empty());
  }

  TEST_CASE("a full disk under the journal is waited for: decisions come when there is room") {
    master_stage s(1);
    s.begin();
    s.disk.fault = error{errc::unavailable, "journal '/j': the disk is full"};
    s.join("a");
    s.pass(2h);
    CHECK(s.endings.empty());
    CHECK(s.was_said("master/journal: journal '/j': the disk is full. Training goes on"));
    CHECK(s.was_said("the disk is full, for 60 min now"));
    CHECK(s.hears("a") == "Welcome() (job = \"job\", beatEveryMs = 250)");
    s.disk.fault.reset();
    s.pass(limits::journal_retry_max);
    CHECK(s.hears("a") == "Prepare g1: a(0,1) of 2 on 1 node");
    CHECK(s.journalled() == "GenerationProposed g1");
  }

  TEST_CASE("a journal that was not asked for does not keep a job waiting for its disk") {
    master_stage s(1);
    s.options.journal = {"/tmp/j", false};
    s.begin();
    s.disk.fault = error{errc::unavailable, "journal '/tmp/j': the disk is full"};
    s.join("a");
    CHECK(s.hears("a").find("Prepare g1") != std::string::npos);
    s.says("a", prepared("a", 1, 4000).any());
    CHECK(s.hears("a") == lines("Start g1, store a.lan:4000", "RankOwners g1 of 1 node"));
    // What is only in memory is read back as well.
    s.crash(s.at.recovery);
    s.pass(2s);
    s.join("a", running_in(1));
    s.says("a", failed("a", 1, {7}).any());
    s.says("a", stopped("a", 1, {7}).any());
    CHECK(s.hears("a").find("Prepare g2: a(0,1) of 2 on 1 node, restart 1") != std::string::npos);
    s.disk.fault.reset();
    s.pass(limits::journal_retry_max);
    CHECK(s.journalled().find("GenerationProposed g1\nGenerationSealed g1") == 0);
  }

  TEST_CASE("a journal that does not answer is not waited for without end") {
    master_stage s(1);
    s.begin();
    s.journal_is_slow = true;
    s.join("a");
    s.pass(limits::journal_patience);
    CHECK(s.was_said("the journal did not take a decision: no answer in time"));
  }

  TEST_CASE("a disk that takes its time delays a decision and disturbs no other actor") {
    master_stage s(1);
    s.begin();
    s.journal_is_slow = true;
    s.join("a");
    s.pass(20s);
    CHECK_FALSE(s.was_said("failed and is to be started again"));
    s.journal_answers();
    CHECK(s.hears("a") ==
          "Welcome() (job = \"job\", beatEveryMs = 250)\nPrepare g1: a(0,1) of 2 on 1 node");
  }

  TEST_CASE("a journal that cannot be read ends the master") {
    master_stage s;
    s.disk.records.emplace_back("rubbish!");
    s.begin();
    s.pass(1s);
    REQUIRE(s.endings.size() == 1);
    REQUIRE(s.endings[0]);
    CHECK(s.endings[0]->what.find("the journal could not be read back") != std::string::npos);
  }

  TEST_CASE("an endpoint at which it cannot listen ends the master, with the reason") {
    master_stage s;
    s.transport->refuse_to_listen(error{errc::refused, "127.0.0.1:1 is busy"});
    s.begin();
    REQUIRE(s.endings.size() == 1);
    CHECK(s.endings[0]->what == "gateway did not start: 127.0.0.1:1 is busy");
  }
}
