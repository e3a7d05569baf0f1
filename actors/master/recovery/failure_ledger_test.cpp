#include "actors/master/recovery/failure_ledger.hpp"

#include "actors/limits.hpp"
#include "messages/msg.hpp"
#include "tests/actors/vocabulary.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

/// A generation that was sealed some time ago.
struct story {
  explicit story(duration since_sealed = 1h) { now += since_sealed; }

  /// Local rank 0 of a node fails; it says so `ago` after that.
  void fails(const node_name& node, int code, duration ago = {}, bool stopped = false,
             const std::string& said = {}) {
    const auto m = messages::author("test").write<messages::Failed>(
        generation{1}, [&](messages::Failed::Builder b) {
          auto f = b.initFailures(1)[0];
          f.setPid(100);
          f.setStopped(stopped);
          f.setExitCode(code);
          f.setMessage(said.empty() ? "code " + std::to_string(code) : said);
          f.setAgoUs(static_cast<std::uint64_t>(
              std::chrono::duration_cast<std::chrono::microseconds>(ago).count()));
        });
    ledger.take(now, node, m.read()->getFailures(), dawn, {});
  }

  /// "b: code -9, a: code 1"
  std::string order() {
    const auto m = messages::author("test").write<messages::Conclude>(
        {}, [&](auto b) { ledger.write(b.initFailures(static_cast<unsigned>(ledger.size()))); });
    std::string all;
    auto verdict = m.read();
    for (const auto f : verdict->getFailures())
      all += (all.empty() ? "" : ", ") + std::string(f.getNode().cStr()) + ": " +
             f.getMessage().cStr();
    return all;
  }

  failure_ledger ledger;
  instant now = dawn;
};

} // namespace

TEST_SUITE("failure_ledger: which failure was the first") {
  TEST_CASE("what showed first is the cause, whichever was heard first") {
    story s;
    // b's interpreter took 200 ms to end; a heard of b's exception and was faster.
    s.fails("a", 1, 20ms);
    s.now += 50ms;
    s.fails("b", 1, 250ms);
    s.now += 50ms;
    s.fails("c", 1, 30ms);
    CHECK(s.order() == "b: code 1, a: code 1, c: code 1");
  }

  TEST_CASE("a sudden end is the cause of what others say a moment earlier") {
    story s;
    s.fails("a", 1, limits::order_uncertain);
    SUBCASE("within what the order is worth") {
      s.fails("b", -9);
      CHECK(s.order() == "b: code -9, a: code 1");
    }
    SUBCASE("but not long after") {
      s.now += 1ms;
      s.fails("b", -9);
      CHECK(s.order() == "a: code 1, b: code -9");
    }
    SUBCASE("nor when a library ends the process because a peer is gone") {
      s.fails("b", -6);
      CHECK(s.order() == "a: code 1, b: code -6");
    }
  }

  TEST_CASE("a peer that is gone is no cause of its own, beside another failure") {
    const std::string lost = "ncclRemoteError: a peer";
    story s;
    s.fails("a", 1, limits::order_uncertain, false, lost);
    SUBCASE("within what the order is worth") {
      s.fails("b", 1);
      CHECK(s.order() == "b: code 1, a: " + lost);
    }
    SUBCASE("but long before") {
      s.now += 1ms;
      s.fails("b", 1);
      CHECK(s.order() == "a: " + lost + ", b: code 1");
    }
    SUBCASE("nor beside one that a library ended because a peer was gone") {
      s.fails("b", -6);
      CHECK(s.order() == "a: " + lost + ", b: code -6");
    }
    SUBCASE("and a first failure of another kind stays the first") {
      story abort;
      abort.fails("a", -6, limits::order_uncertain);
      abort.fails("b", 1);
      CHECK(abort.order() == "a: code -6, b: code 1");
    }
    SUBCASE("nor beside one that its node has stopped") {
      s.fails("b", -15, {}, true);
      CHECK(s.order() == "a: " + lost + ", b: code -15");
    }
    SUBCASE("it is where all say it") {
      s.fails("b", 1, {}, false, lost);
      CHECK(s.order() == "a: " + lost + ", b: " + lost);
      CHECK(s.ledger.root_cause_in_words().find("(it lost the network, or a peer)") !=
            std::string::npos);
    }
  }

  TEST_CASE("a process that was stopped is not the cause while another one failed by itself") {
    story s;
    // It had written its error file first, and was ended by our signal before its interpreter was.
    s.fails("a", -15, limits::order_uncertain, true);
    s.fails("b", 1);
    CHECK(s.order() == "b: code 1, a: code -15");
    // With no other failure it is what there is.
    story alone;
    alone.fails("a", -15, {}, true);
    CHECK(alone.order() == "a: code -15");
  }

  TEST_CASE("no node can say that it failed before the generation was there") {
    story s(10ms);
    s.fails("a", 1, 9ms);
    s.fails("b", 1, std::chrono::hours(1'000'000));
    CHECK(s.order() == "b: code 1, a: code 1");
    // So a sudden end at once is not too late.
    story t(1ms);
    t.fails("a", -9);
    t.fails("b", 1, 24h);
    CHECK(t.order() == "a: code -9, b: code 1");
  }

  TEST_CASE("a report repeated adds nothing, and only so many failures are kept") {
    story s;
    s.fails("a", 1);
    s.fails("a", 1);
    CHECK(s.ledger.size() == 1);
    s.now += 10s;
    const auto many = failed("b", 1, std::vector<int>(limits::failures_kept + 5, 1));
    s.ledger.take(s.now, "b", many.read()->getFailures(), dawn, {});
    CHECK(s.ledger.size() == limits::failures_kept);
    // The cause may be the last to be heard of: its process writes its error file first.
    s.now += 1s;
    s.fails("c", 7, 9s);
    CHECK(s.ledger.size() == limits::failures_kept);
    CHECK(s.order().find("c: code 7") != std::string::npos);
  }

  TEST_CASE("the root cause in words: which rank, where, and what it means") {
    story s;
    s.fails("a", 201);
    CHECK(s.ledger.root_cause_in_words() ==
          "rank 0 (node a, local rank 0, pid 100) failed: code 201 (its hardware seems to be "
          "broken)");
  }
}
