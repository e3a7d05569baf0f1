#include "actors/master/recovery/recovery_core.hpp"
#include "runtime/base/limits.hpp"
#include "tests/actors/vocabulary.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

using phase = recovery_core::phase;

namespace {

/// Who pays for what.
struct account {
  explicit account(const recovery_options& o, const std::vector<messages::any_msg>& past = {})
      : core(o, messages::author("master/recovery")) {
    core.recall(dawn, past);
  }

  void begins(std::uint64_t g, const std::vector<node_name>& nodes = {"a", "b"},
              std::uint32_t restart_count = 0) {
    core.sealed(now, sealed(g, nodes, restart_count));
    for (const auto& node : nodes)
      core.running(now, running(node, g));
  }
  std::string fails(const node_name& node, std::uint64_t g, int code = 1) {
    return text(last = core.failed(now, failed(node, g, {code})));
  }
  std::string waits(std::uint64_t g) {
    return text(core.nodes_waiting(
        now, messages::author("x").write<messages::NodesWaiting>(
                 generation{g}, [](auto b) { b.setReason("2 more nodes are here"); })));
  }
  std::string needs(const node_name& node, std::uint64_t g) {
    return text(core.indispensable(now, messages::author("x").write<messages::Indispensable>(
                                            generation{g}, [&](auto b) { b.setNode(node); })));
  }
  std::string is_lost(const node_name& node) { return text(core.node_lost(now, lost(node))); }

  recovery_core core;
  instant now = dawn;
  recovery_core::effects last;
};

recovery_options restarts(std::uint32_t max) {
  recovery_options o;
  o.max_restarts = max;
  return o;
}

bool reforms(const std::string& said) {
  return said.find("instruct Reform") != std::string::npos;
}
bool ends(const std::string& said) {
  return said.find("verdict failure") != std::string::npos;
}

} // namespace

TEST_SUITE("recovery_core: the budget of each node") {
  TEST_CASE("every node has its own, and the one with the root cause pays") {
    account s(restarts(1));
    s.begins(1);
    CHECK(s.fails("a", 1) == lines("record RestartCharged g1 to a, restart 1 [a/0: exit code 1]",
                                   "instruct Reform g1, restart 1: rank 0 (node a, local rank 0, "
                                   "pid 100) failed: exit code 1"));
    s.begins(2, {"a", "b"}, 1);
    CHECK(s.fails("b", 2).find("record RestartCharged g2 to b, restart 2") == 0);
    s.begins(3, {"a", "b"}, 2);
    CHECK(s.fails("b", 3).find("all 1 restarts of node b are used up") != std::string::npos);
  }

  TEST_CASE("what was charged is remembered") {
    account s(restarts(1), {charged_record(1, 1, "a")});
    s.begins(2);
    CHECK(reforms(s.fails("b", 2)));
    s.begins(3);
    CHECK(ends(s.fails("a", 3)));
  }
}

TEST_SUITE("recovery_core: a world that could be larger") {
  TEST_CASE("is formed anew, free of charge") {
    account s(restarts(0));
    s.begins(1);
    CHECK(s.waits(1) == "instruct Reform g1, restart 0: 2 more nodes are here");
    CHECK(s.waits(1) == "");
  }

  TEST_CASE("unless part of the work is done, somebody is away, or it is another one") {
    account s(restarts(0));
    s.begins(1);
    CHECK(s.waits(2) == "");
    s.core.node_away(s.now, away("b"));
    CHECK(s.waits(1) == "");
    s.core.node_present(s.now, present("b", running_in(1)));
    s.core.finished(s.now, finished("a", 1));
    CHECK(s.waits(1) == "");
  }
}

TEST_SUITE("recovery_core: broken hardware") {
  TEST_CASE("the node is given up, free of charge, and whoever fails with it costs nothing") {
    account s(restarts(0));
    s.begins(1);
    CHECK(s.fails("a", 1, 201) ==
          "instruct Reform g1 without a, restart 0: rank 0 (node a, local rank 0, pid 100) failed: "
          "exit code 201 (its hardware seems to be broken)");
    CHECK(s.core.current_phase() == phase::parting);
    CHECK(s.fails("b", 1) == "");
    s.begins(2, {"b", "c"});
    CHECK(s.core.current_phase() == phase::watching);
  }

  TEST_CASE("known by a line of a log, which is told") {
    account s(restarts(0));
    s.begins(1);
    const auto report = messages::author("test").write<messages::Failed>(
        generation{1}, [](messages::Failed::Builder b) {
          b.setNode("a");
          auto f = b.initFailures(1)[0];
          f.setPid(100);
          f.setExitCode(1);
          f.setMessage("exit code 1");
          f.setLogTail("step 7\nCUDA error: uncorrectable ECC error encountered\n");
        });
    CHECK(text(s.core.failed(s.now, report)) ==
          "instruct Reform g1 without a, restart 0: rank 0 (node a, local rank 0, pid 100) failed: "
          "exit code 1 (its hardware seems to be broken: \"CUDA error: uncorrectable ECC error "
          "encountered\")");
    // In the verdict the line is told, and the rest of the log is not.
    bool concluded = false;
    for (const auto& e :
         s.core.indispensable(s.now, messages::author("x").write<messages::Indispensable>(
                                         generation{1}, [](auto b) { b.setNode("a"); })))
      if (const auto* order = std::get_if<recovery_core::instruct>(&e)) {
        auto verdict = order->message.as<messages::Conclude>().read();
        const auto f = verdict->getFailures()[0];
        CHECK(f.getSign() == "CUDA error: uncorrectable ECC error encountered");
        CHECK(f.getExitClass() == exit_class::HARDWARE);
        CHECK(f.getLogTail() == "");
        concluded = true;
      }
    CHECK(concluded);
  }

  TEST_CASE("a node that cannot be spared has failed like any other") {
    account s(restarts(1));
    s.begins(1);
    s.fails("a", 1, 201);
    CHECK(s.needs("a", 7) == "");
    CHECK(s.needs("a", 1).find("record RestartCharged g1 to a, restart 1") == 0);
    s.begins(2);
    s.fails("a", 2, 201);
    CHECK(ends(s.needs("a", 2)));
    CHECK(s.needs("a", 2) == "");
  }

  TEST_CASE("it is lost before the answer: then it is free") {
    account s(restarts(0));
    s.begins(1);
    s.fails("a", 1, 201);
    CHECK(s.is_lost("a") == "instruct Reform g1, restart 0: node a is lost");
    CHECK(s.needs("a", 1) == "");
  }
}

TEST_SUITE("recovery_core: progress") {
  TEST_CASE("so many generations in a row without it end the job, with a code of their own") {
    auto o = restarts(9);
    o.without_progress_max = 3;
    o.progress_after = 60s;
    account s(o);
    for (std::uint64_t g = 1; g <= 2; ++g) {
      s.begins(g);
      s.now += 59s;
      CHECK(reforms(s.fails("a", g)));
    }
    s.begins(3);
    CHECK(s.fails("b", 3).find(
              "3 generations in a row failed within 60.0 s of the start, which is no progress "
              "(--no-progress-limit)") != std::string::npos);
    const auto* v = std::get_if<recovery_core::verdict>(&s.last.back());
    REQUIRE(v);
    CHECK(v->exit_code == limits::exit_no_progress);
  }

  TEST_CASE("one generation that ran long enough makes up for those before") {
    auto o = restarts(9);
    o.without_progress_max = 2;
    o.progress_after = 60s;
    account s(o);
    s.begins(1);
    CHECK(reforms(s.fails("a", 1)));
    s.begins(2);
    s.now += 60s;
    CHECK(reforms(s.fails("a", 2)));
    s.begins(3);
    CHECK(reforms(s.fails("a", 3)));
    s.begins(4);
    CHECK(ends(s.fails("a", 4)));
  }

  TEST_CASE("losses and newcomers are no failures, and the count outlives the master") {
    auto o = restarts(9);
    o.without_progress_max = 2;
    const auto charged =
        messages::author("x").write<messages::RestartCharged>(generation{1}, [](auto b) {
          b.setGeneration(1);
          b.setRestartCount(1);
          b.setNode("a");
          b.setWithoutProgress(1);
        });
    account s(o, {charged.any()});
    s.begins(2);
    CHECK(reforms(s.is_lost("b")));
    s.begins(3);
    CHECK(reforms(s.waits(3)));
    s.begins(4);
    CHECK(ends(s.fails("a", 4)));
  }
}
