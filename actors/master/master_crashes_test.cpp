#include "tests/actors/master_stage.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

/// A job of two nodes that runs.
struct running_job : master_stage {
  explicit running_job(std::uint64_t seed = 1) : master_stage(2, 3, seed) {
    begin();
    join("a");
    join("b");
    run_two();
  }

  /// Those that lost their links dial again.
  void come_back(const doing& d = running_in(1)) {
    for (const node_name node : {"a", "b"})
      if (links.at(node)->ended())
        join(node, d);
    pass(1s);
  }

  /// The job still works: a failure leads to the next generation, which runs.
  void goes_on() {
    come_back();
    hears("a");
    hears("b");
    says("a", failed("a", 1, {7}).any());
    stop_two();
    CHECK(hears("b").find("Prepare g2: b(2,3) of 4 on 2 nodes, restart 1") != std::string::npos);
    run_two(2);
    says("a", finished("a", 2).any());
    says("b", finished("b", 2).any());
    REQUIRE(verdicts.size() == 1);
    CHECK(verdicts[0].success);
  }
};

const std::string welcome = "Welcome() (job = \"job\", beatEveryMs = 250)";
/// To a node that runs generation 1 of two nodes.
const std::string welcome_back = lines(welcome, "RankOwners g1 of 2 nodes");

} // namespace

/// A bug of ours ends one actor: what falls with it, and that training does not.
TEST_SUITE("master: crashes") {
  TEST_CASE("of the journal, membership, job or recovery: links are made anew, training runs on") {
    const auto crash_nth = [](running_job& s, int n) {
      if (n == 0)
        s.crash(s.at.journal);
      else if (n == 1)
        s.crash(s.at.membership);
      else if (n == 2)
        s.crash(s.at.job);
      else
        s.crash(s.at.recovery);
    };
    for (int n = 0; n < 4; ++n)
      for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        CAPTURE(n);
        CAPTURE(seed);
        running_job s(seed);
        crash_nth(s, n);
        s.pass(2s);
        CHECK(s.who_lost_its_link() == "a b");
        s.come_back();
        CHECK(s.hears("a") == welcome_back);
        CHECK(s.hears("b") == welcome_back);
        s.pass(1min);
        CHECK(s.hears("a") == "");
        s.goes_on();
        CHECK(s.endings.empty());
      }
  }

  TEST_CASE(
      "of the gateway: no node loses its link, and newcomers find the endpoint where it was") {
    running_job s;
    s.crash(s.at.gateway);
    CHECK(s.who_lost_its_link() == "");
    REQUIRE(s.listening.size() == 2);
    CHECK(s.listening[1] == s.listening[0]);
    // Their sessions are numbered apart from those that live.
    s.join("c");
    s.join("d");
    CHECK(s.hears("c").find(lines(welcome, "StandBy: ")) == 0);
    CHECK(s.hears("d").find(lines(welcome, "StandBy: ")) == 0);
    s.goes_on();
  }

  TEST_CASE("of the supervisor of sessions: links are made anew") {
    running_job s;
    s.crash(s.at.sessions);
    s.pass(2s);
    CHECK(s.who_lost_its_link() == "a b");
    s.goes_on();
  }

  TEST_CASE("of one session: its node is away until it dials again, the others are not concerned") {
    running_job s;
    s.crash(s.session_of("b"));
    CHECK(s.was_said("node b has lost its link (its session ended)"));
    CHECK(s.links.at("a")->ended() == std::nullopt);
    s.join("b", running_in(1));
    CHECK(s.hears("b") == welcome_back);
    s.goes_on();
  }

  TEST_CASE("of one session whose node is gone as well: the node is lost") {
    running_job s;
    s.crash(s.session_of("b"));
    s.pass(3s);
    CHECK(s.hears("a").find("Stop g1: node b is lost: ") == 0);
  }

  TEST_CASE("of rendezvous while it prepares: the number is burnt, the next world forms") {
    master_stage s;
    s.begin();
    s.join("a");
    s.join("b");
    s.says("a", prepared("a", 1, 4000).any());
    s.hears("a");
    s.crash(s.at.rendezvous);
    CHECK(s.hears("a").find("Stop g1: ") == 0);
    s.stop_two();
    CHECK(s.hears("a") == lines("Stop g1: killed", "Prepare g2: a(0,1) of 4 on 2 nodes"));
  }

  TEST_CASE(
      "of recovery between the records of a failure and their announcement: counted once, and "
      "announced under the next number once it is back") {
    running_job s;
    s.says("a", failed("a", 1, {7}).any());
    s.hears("b");
    s.journal_is_slow = true;
    s.stop_two();
    CHECK(s.hears("b") == "");
    s.crash(s.at.recovery);
    s.journal_is_slow = false;
    s.journal_answers();
    s.pass(2s);
    s.come_back(idle_after(1));
    CHECK(s.hears("b").find("Prepare g3: b(2,3) of 4 on 2 nodes, restart 1") != std::string::npos);
    CHECK(s.journalled().find("restart 2") == std::string::npos);
  }

  TEST_CASE(
      "of recovery between the verdict's record and its announcement: announced once it is back") {
    running_job s;
    s.says("a", finished("a", 1).any());
    s.journal_is_slow = true;
    s.says("b", finished("b", 1).any());
    s.crash(s.at.recovery);
    s.journal_is_slow = false;
    s.journal_answers();
    s.pass(2s);
    s.come_back(finished_in(1));
    CHECK(s.hears("a") == lines(welcome, "Conclude success: every worker finished"));
    REQUIRE(s.verdicts.size() == 1);
    CHECK(s.verdicts[0].success);
  }

  TEST_CASE("of any actor after the verdict: a node that comes back is still told") {
    for (const bool all : {false, true}) {
      running_job s;
      s.says("a", finished("a", 1).any());
      s.says("b", finished("b", 1).any());
      if (all)
        s.crash(s.at.journal);
      else
        s.crash(s.at.recovery);
      s.pass(2s);
      s.come_back(finished_in(1));
      CHECK(s.hears("a") == lines(welcome, "Conclude success: every worker finished"));
      CHECK(s.hears("b") == lines(welcome, "Conclude success: every worker finished"));
    }
  }

  TEST_CASE(
      "more than a handful in a minute are a bug that restarting does not cure: the master ends") {
    running_job s;
    for (int i = 0; i < 6; ++i) {
      REQUIRE(s.endings.empty());
      s.crash(s.at.recovery);
      s.pass(1s);
    }
    REQUIRE(s.endings.size() == 1);
    REQUIRE(s.endings[0]);
    CHECK(s.endings[0]->what.find(
              "more than 5 restarts within 60.0 s, the last because recovery") == 0);
  }

  TEST_CASE("of the whole master: another on the same disk goes on with the job") {
    running_job s;
    s.says("a", failed("a", 1, {7}).any());
    s.stop_two();
    s.run_two(2);
    s.root->kill();
    s.settle();
    REQUIRE(s.endings.size() == 1);
    s.root.reset(); // nothing of a dead process holds its file
    REQUIRE_FALSE(s.disk.locked);

    master_stage next;
    next.disk = s.disk;
    next.begin();
    next.join("b", running_in(2));
    next.join("a", running_in(2));
    CHECK(next.hears("a") == lines(R"(Welcome(term = 2) (job = "job", beatEveryMs = 250))",
                                   "RankOwners g2 of 2 nodes"));
    next.says("b", failed("b", 2, {8}).any());
    next.stop_two(2);
    next.pass(std::chrono::seconds(1)); // a second failure at the start is followed by a pause
    // The third generation, under the second term.
    CHECK(next.hears("a").find("Prepare g4099: a(0,1) of 4 on 2 nodes, restart 2") !=
          std::string::npos);
  }
}
