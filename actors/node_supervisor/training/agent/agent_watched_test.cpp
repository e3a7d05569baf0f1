#include "tests/actors/agent_story.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

std::string in_words(const messages::msg<messages::Watched>& m) {
  std::string all = fmt::format("g{} of {}:", m.envelope().about.value, m.read()->getWorldSize());
  auto said = m.read();
  for (auto p : said->getProcesses())
    all += fmt::format(" {}/{} pid {}", p.getRank(), p.getLocalRank(), p.getPid());
  return said->getEndedWell() ? all + " all have ended well" : all;
}

/// What the hang watchdog is told, in order.
std::string told_to_watchdog(const agent_core::effects& effects) {
  std::string all;
  for (const auto& e : effects)
    if (const auto* w = std::get_if<agent_core::watch>(&e))
      all += (all.empty() ? "" : "; ") + in_words(w->what);
  return all;
}

/// The order for a generation that follows a failure, so long ago.
messages::msg<messages::Prepare> prepare_after_failure(std::uint64_t g,
                                                       std::chrono::milliseconds ago) {
  const auto plain = prepare(g, {"a", "b"}, "b");
  messages::author master("recovery");
  return master.write<messages::Prepare>(generation{g}, [&](auto b) {
    b.setSeat(plain.read()->getSeat());
    b.getSeat().setSinceFailureMs(static_cast<std::uint64_t>(ago.count()));
  });
}

std::uint64_t nanoseconds(instant at) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(at.time_since_epoch()).count());
}

messages::msg<messages::EndWorker> end_worker(std::uint64_t g, std::uint32_t rank) {
  messages::author diagnosis("diagnosis");
  return diagnosis.write<messages::EndWorker>(generation{g}, [rank](auto b) {
    b.setRank(rank);
    b.setWhy("ranks 0, 1 wait for it");
  });
}

} // namespace

TEST_SUITE("agent_core: what the hang watchdog and the diagnosis have to do with it") {
  TEST_CASE("the watchdog hears of the processes when the last one is there, and no sooner") {
    agent_story s("b");
    s.prepares(1);
    s.starts(1);
    CHECK(told_to_watchdog(s.core.worker_started(s.now, worker_started(1, 1, 101))).empty());
    CHECK(in_words(s.core.watched()) == "g1 of 4:");
    CHECK(told_to_watchdog(s.core.worker_started(s.now, worker_started(1, 0, 100))) ==
          "g1 of 4: 2/0 pid 100 3/1 pid 101");
    CHECK(in_words(s.core.watched()) == "g1 of 4: 2/0 pid 100 3/1 pid 101");
  }

  TEST_CASE("a generation that ends is not watched any more, whatever ends it") {
    agent_story stopped("b");
    stopped.runs(1);
    CHECK(told_to_watchdog(stopped.core.stop(stopped.now, stop(1))) == "g1 of 4:");
    agent_story failed("b");
    failed.runs(1);
    exit_report why;
    CHECK(told_to_watchdog(failed.end_of(1, 0, {false, 7}, why, false)) == "g1 of 4:");
    agent_story finished("b");
    finished.runs(1);
    CHECK(told_to_watchdog(finished.end_of(1, 0, {}, why, false)).empty());
    CHECK(told_to_watchdog(finished.end_of(1, 1, {}, why, false)) ==
          "g1 of 4: all have ended well");
  }

  TEST_CASE("what is told of processes says when the failure was that led to them") {
    agent_story s("b");
    s.now += 1h;
    const auto failed = s.now - 1500ms;
    s.told(s.core.prepare(s.now, prepare_after_failure(1, 1500ms)));
    s.finds_port(4000);
    s.starts(1);
    s.now += 20s;
    s.comes_up(1, 0);
    s.comes_up(1, 1);
    CHECK(s.core.watched().read()->getFailedAtNs() == nanoseconds(failed));
    // The generation after it follows none: a node came.
    s.prepares(2);
    CHECK(s.core.watched().read()->getFailedAtNs() == 0);
  }

  TEST_CASE("a first generation follows no failure") {
    agent_story s("b");
    s.runs(1);
    CHECK(s.core.watched().read()->getFailedAtNs() == 0);
  }

  TEST_CASE("a rank that hangs is killed, and fails with the reason") {
    agent_story s("b");
    s.runs(1);
    CHECK(text(s.core.end_worker(s.now, end_worker(1, 3))) == "pass on 1: signal 9 alone");
    CHECK(s.ends(1, 1, {true, SIGKILL}) == "report Failed g1 b [b/1: ranks 0, 1 wait for it]");
  }

  TEST_CASE("an order for another generation, another node's rank or a process that is gone") {
    agent_story s("b");
    s.runs(1);
    CHECK(s.core.end_worker(s.now, end_worker(2, 3)).empty());
    CHECK(s.core.end_worker(s.now, end_worker(1, 1)).empty());
    CHECK(s.core.end_worker(s.now, end_worker(1, 4)).empty());
    s.ends(1, 1, {});
    CHECK(s.core.end_worker(s.now, end_worker(1, 3)).empty());
  }
}
