#include "tests/actors/node_stage.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

struct running_node : node_stage {
  explicit running_node(std::uint64_t seed = 1) : node_stage("a", seed) {
    options.uplink.train_on_within = 60s;
    begin();
    runs();
    REQUIRE(processes->living() == "g1/0 g1/1");
  }

  void user_interrupts(int signal) {
    sup::post(at.agent, messages::local<messages::Interrupt>(
                            "test", [signal](auto b) { b.setSignal(signal); }));
  }
};

messages::any_msg refused(bool retry) {
  return messages::author("master")
      .write<messages::Refused>({},
                                [retry](auto b) {
                                  b.setReason("not you");
                                  b.setRetry(retry);
                                })
      .any();
}

} // namespace

/// A node supervisor's actors together: what its master hears, and what becomes of its processes.
TEST_SUITE("node: one job") {
  TEST_CASE("from the hello to success") {
    node_stage s;
    s.begin();
    CHECK(s.accept() == "Hello a idle g0");
    s.welcomes();
    s.says(prepare(1, {"a", "b"}).any());
    CHECK(s.hears() == "Prepared g1 a port 4000");
    s.says(start(1).any());
    CHECK(s.hears() == "Running g1 a");
    CHECK(s.processes->living().size() == std::string("g1/0 g1/1").size());
    s.ends("g1/1", exited(0));
    CHECK(s.hears() == "");
    s.ends("g1/0", exited(0));
    CHECK(s.hears() == "Finished g1 a");
    s.says(conclude(true, "done").any());
    CHECK(s.hears() == "Goodbye: done");
    REQUIRE(s.outcomes.size() == 1);
    CHECK(s.outcomes[0].success);
    CHECK(s.outcomes[0].verdict);
  }

  TEST_CASE("a worker fails: the master hears it at once, the others end, then comes the sweep") {
    running_node s;
    s.ends("g1/0", exited(7));
    CHECK(s.hears() == "Failed g1 a [a/0: exit code 7]");
    CHECK(s.processes->take_deeds() == "g1/1 gets 15");
    s.ends("g1/1", killed_by(SIGTERM));
    CHECK(s.processes->take_deeds() == "sweep");
    CHECK(s.hears() ==
          lines("Failed g1 a [a/0: exit code 7] ended", "Stopped g1 a [a/0: exit code 7]"));
    s.says(prepare(2, {"a", "b"}).any());
    CHECK(s.hears() == "Prepared g2 a port 4000");
    s.says(start(2).any());
    CHECK(s.hears() == "Running g2 a");
  }

  TEST_CASE(
      "a worker that ignores SIGTERM is killed when its time is up, and only then is it ready") {
    running_node s;
    s.says(prepare(2, {"a", "b"}).any());
    CHECK(s.processes->take_deeds().find("gets 15") != std::string::npos);
    s.ends("g1/0", killed_by(SIGTERM));
    s.pass(30s - 1ms);
    CHECK(s.processes->take_deeds() == "");
    CHECK(s.hears() == "");
    s.pass(1ms);
    CHECK(s.processes->take_deeds() == "g1/1 gets 9, sweep");
    CHECK(s.hears() == lines("Stopped g1 a", "Prepared g2 a port 4000"));
  }

  TEST_CASE("group rank 0 hosts the store until the processes of its generation are gone") {
    running_node s;
    CHECK(s.stores->open_now() == 1);
    CHECK(s.stores->last().reach == ports::store_reach::network);
    CHECK(s.stores->last().address == "a.lan");
    s.ends("g1/0", exited(0));
    s.ends("g1/1", exited(0));
    CHECK(s.stores->open_now() == 1); // other nodes may still be at work
    s.says(prepare(2, {"b", "a"}).any());
    CHECK(s.stores->open_now() == 0);
    s.says(prepare(3, {"a"}).any());
    CHECK(s.stores->open_now() == 1);
    CHECK(s.stores->last().reach == ports::store_reach::this_machine);
    s.says(conclude(true, "done").any());
    CHECK(s.stores->open_now() == 0);
  }

  TEST_CASE("an agent that crashes takes the store along") {
    running_node s;
    s.crash(s.at.agent);
    CHECK(s.stores->open_now() == 0);
  }

  TEST_CASE("where the store is left to rank 0's worker, it gets a free port") {
    node_stage s;
    s.options.agent.hosts_store = false;
    s.begin();
    s.accept();
    s.welcomes();
    s.says(prepare(1, {"a"}).any());
    CHECK(s.hears() == "Prepared g1 a port 4000 for its worker");
    CHECK(s.stores->open_now() == 0);
    s.processes->no_ports = true;
    s.says(prepare(2, {"a"}).any());
    CHECK(s.hears() == "Prepared g2 a");
    CHECK(s.was_said("no port is free"));
  }

  TEST_CASE("a node that cannot open a store says so") {
    node_stage s;
    s.begin();
    s.accept();
    s.welcomes();
    s.stores->refuse_to_open(error{errc::refused, "no sockets left"});
    s.says(prepare(1, {"a"}).any());
    CHECK(s.hears() == "Prepared g1 a");
    CHECK(s.was_said("no sockets left"));
  }

  TEST_CASE("what cannot be started is a failure before the start, and no fault of a supervisor") {
    node_stage s;
    s.begin();
    s.accept();
    s.welcomes();
    // More often than any supervisor here would bear a crash.
    for (std::uint64_t g = 1; g <= 12; ++g) {
      s.processes->refuse_to_start(g % 2 ? std::optional(error{errc::invalid, "no such program"})
                                         : std::nullopt);
      s.no_spec = g % 2 ? std::nullopt : std::optional(error{errc::invalid, "no log directory"});
      s.says(prepare(g, {"a"}).any());
      s.hears();
      s.says(start(g).any());
      const auto said = s.hears();
      CHECK(said.find(g % 2 ? "no such program" : "no log directory") != std::string::npos);
      CHECK(said.find("Failed g" + std::to_string(g)) != std::string::npos);
    }
    CHECK(s.endings.empty());
    CHECK_FALSE(s.was_said("failed and is to be started again"));
    CHECK_FALSE(s.was_said("started again"));
  }

  TEST_CASE("the user's first signal is passed on, the second kills, and the node says goodbye") {
    running_node s;
    s.user_interrupts(SIGINT);
    s.settle();
    CHECK(s.processes->take_deeds() == "g1/0 gets 2, g1/1 gets 2");
    s.user_interrupts(SIGINT);
    s.settle();
    CHECK(s.processes->living() == "");
    CHECK(s.hears() == "Goodbye: the launcher received signal 2 (SIGINT)");
    REQUIRE(s.outcomes.size() == 1);
    CHECK_FALSE(s.outcomes[0].success);
  }

  TEST_CASE("a signal for the workers is passed on, and they go on") {
    running_node s;
    sup::post(s.at.agent, messages::local<messages::WorkerSignal>(
                              "test", [](auto b) { b.setNumber(SIGUSR1); }));
    s.settle();
    CHECK(s.processes->take_deeds() == "g1/0 gets 10, g1/1 gets 10");
    CHECK(s.hears() == "");
    CHECK(s.outcomes.empty());
  }

  TEST_CASE("a tree that is asked to end takes its processes along, and says goodbye first") {
    running_node s;
    s.root->stop();
    s.pass(10s);
    CHECK(s.processes->living() == "");
    REQUIRE(s.endings.size() == 1);
    CHECK_FALSE(s.endings[0]);
    CHECK(s.link->ended() == "the node supervisor ends");
  }
}

TEST_SUITE("node: links") {
  TEST_CASE(
      "a link that breaks stops no worker; the node comes back as itself, doing what it does") {
    running_node s;
    s.link->breaks();
    s.pass(200ms);
    CHECK(s.accept() == "Hello a running g1");
    CHECK(s.processes->take_deeds() == "");
    CHECK(s.incarnations[1] == s.incarnations[0]);
  }

  TEST_CASE("what happens while there is no link is in the hello") {
    running_node s;
    s.link->breaks();
    s.ends("g1/0", exited(3));
    s.ends("g1/1", killed_by(SIGTERM));
    s.pass(200ms);
    CHECK(s.accept() == "Hello a failed g1 [a/0: exit code 3]");
  }

  TEST_CASE("what happens between a hello and its welcome is said after the welcome") {
    running_node s;
    s.link->breaks();
    s.pass(200ms);
    s.accept();
    s.ends("g1/0", exited(3));
    CHECK(s.hears() == "");
    s.welcomes();
    CHECK(s.hears() == "Failed g1 a [a/0: exit code 3]");
  }

  TEST_CASE("a master that cannot be reached is given up in time, and the processes end") {
    running_node s;
    s.link->breaks();
    for (int i = 0; i < 200 && s.outcomes.empty(); ++i) {
      s.pass(1s);
      if (s.transport->dialling())
        s.transport->refuse_dial(error{errc::unavailable, "no route"});
      s.settle();
      if (s.processes->take_deeds().find("gets 15") != std::string::npos) {
        s.ends("g1/0", killed_by(SIGTERM));
        s.ends("g1/1", killed_by(SIGTERM));
      }
    }
    REQUIRE(s.outcomes.size() == 1);
    CHECK(s.outcomes[0].reason == "no link to the master at master:29400 for 60.0 s: no route");
  }

  TEST_CASE("refused for good: over; refused for now: the workers end and it joins anew") {
    node_stage s;
    s.begin();
    s.accept();
    s.says(refused(false));
    REQUIRE(s.outcomes.size() == 1);
    CHECK(s.outcomes[0].reason == "the master at master:29400 refused this node: not you");

    running_node t;
    t.says(refused(true));
    CHECK(t.processes->take_deeds() == "g1/0 gets 15, g1/1 gets 15");
    t.ends("g1/0", killed_by(SIGTERM));
    t.ends("g1/1", killed_by(SIGTERM));
    t.pass(200ms);
    CHECK(t.accept() == "Hello a idle g1");
    CHECK(t.incarnations[1] != t.incarnations[0]);
  }

  TEST_CASE("messages through a link that was given up already mean nothing") {
    running_node s;
    const auto old = s.link;
    s.crash(s.at.agent);
    s.pass(10s);
    s.accept();
    CHECK(old->ended());
    CHECK(s.hears() == "");
  }
}

TEST_SUITE("node: crashes") {
  TEST_CASE("of the uplink: training runs on, and the node comes back as itself") {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      running_node s(seed);
      const auto old = s.link;
      s.crash(s.at.uplink);
      CHECK(s.accept() == "Hello a running g1");
      CHECK(s.incarnations[1] == s.incarnations[0]);
      CHECK(s.processes->take_deeds() == "");
      s.welcomes();
      s.says(stop(1).any());
      CHECK(s.processes->take_deeds() == "g1/0 gets 15, g1/1 gets 15");
    }
  }

  TEST_CASE(
      "of the agent: its processes end with it, the master hears it, the next generation runs") {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      CAPTURE(seed);
      running_node s(seed);
      s.crash(s.at.agent);
      s.pass(200ms);
      CHECK(s.processes->living() == "");
      s.processes->take_deeds();
      CHECK(s.accept() == "Hello a idle g0");
      CHECK(s.incarnations[1] == s.incarnations[0]);
      s.welcomes();
      s.says(prepare(2, {"a"}).any());
      // It cannot know what its predecessor left behind.
      CHECK(s.processes->take_deeds() == "sweep");
      CHECK(s.hears() == "Prepared g2 a port 4000");
      s.says(start(2).any());
      CHECK(s.hears() == "Running g2 a");
      CHECK(s.endings.empty());
    }
  }

  TEST_CASE("of the supervisor of the processes: they end, and the agent reports them failed") {
    running_node s;
    s.crash(s.at.worker_group);
    s.pass(1s);
    CHECK(s.processes->living() == "");
    CHECK(s.hears().find("Failed g1 a [") != std::string::npos);
    s.says(prepare(2, {"a"}).any());
    s.says(start(2).any());
    CHECK(s.hears() == lines("Prepared g2 a port 4000", "Running g2 a"));
  }
}
