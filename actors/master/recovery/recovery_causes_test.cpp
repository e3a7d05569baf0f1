#include "actors/master/recovery/recovery_core.hpp"
#include "runtime/base/limits.hpp"
#include "tests/actors/vocabulary.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

using phase = recovery_core::phase;

namespace {

/// Generation 1 on a, b and c, without restarts; failures of other nodes are waited for.
struct story {
  explicit story(duration since_sealed = 1h) {
    core.sealed(now, sealed(1, {"a", "b", "c"}));
    now += since_sealed;
  }

  /// Local rank 0 of a node fails; it says so `ago` after that.
  std::string fails(const node_name& node, int code, duration ago = {}, bool ended = true) {
    const auto m = messages::author("test").write<messages::Failed>(
        generation{1}, [&](messages::Failed::Builder b) {
          b.setNode(node);
          b.setEnded(ended);
          auto f = b.initFailures(1)[0];
          f.setNode(node);
          f.setPid(100);
          f.setExitCode(code);
          f.setMessage("code " + std::to_string(code));
          f.setAgoUs(static_cast<std::uint64_t>(
              std::chrono::duration_cast<std::chrono::microseconds>(ago).count()));
        });
    return order_in(text(core.failed(now, m)));
  }
  std::string passes(duration d) {
    now += d;
    return order_in(text(core.tick(now)));
  }

  /// The failures of the verdict, in its order; empty if there is none.
  static std::string order_in(const std::string& said) {
    const auto begin = said.find('['), end = said.find(']');
    return begin == std::string::npos ? "" : said.substr(begin + 1, end - begin - 1);
  }

  recovery_core core{recovery_options{0, limits::verdict_settles}, messages::author("recovery")};
  instant now = dawn;
};

} // namespace

TEST_SUITE("recovery_core: which failure was the first") {
  TEST_CASE("the verdict waits for what else fails, and for no longer than that") {
    story s;
    CHECK(s.fails("a", 1) == "");
    CHECK(s.core.current_phase() == phase::settling);
    CHECK(s.core.next_wakeup() == s.now + limits::verdict_settles);
    SUBCASE("all have told") {
      CHECK(s.fails("b", 1) == "");
      CHECK(s.fails("c", 1) == "a/0: code 1, b/0: code 1, c/0: code 1");
    }
    SUBCASE("one of them has processes left") {
      CHECK(s.fails("b", 1) == "");
      CHECK(s.fails("c", 1, {}, false) == "");
      CHECK(s.fails("c", 1) == "a/0: code 1, b/0: code 1, c/0: code 1");
    }
    SUBCASE("one has finished") {
      CHECK(s.fails("b", 1) == "");
      CHECK(story::order_in(text(s.core.finished(s.now, finished("c", 1)))) ==
            "a/0: code 1, b/0: code 1");
    }
    SUBCASE("time is up") {
      CHECK(s.passes(limits::verdict_settles - 1ns) == "");
      CHECK(s.passes(1ns) == "a/0: code 1");
      CHECK(s.fails("b", 1) == "");
    }
    CHECK(s.core.current_phase() == phase::concluded);
    CHECK_FALSE(s.core.next_wakeup());
  }

  TEST_CASE("what showed first is the cause, whoever was heard first") {
    story s;
    // b's interpreter took 200 ms to end; a heard of b's exception and was faster.
    s.fails("a", 1, 20ms);
    s.now += 50ms;
    s.fails("b", 1, 250ms);
    s.now += 50ms;
    CHECK(s.fails("c", 1, 30ms) == "b/0: code 1, a/0: code 1, c/0: code 1");
  }

  TEST_CASE("a sudden end is the cause of what others say a moment earlier") {
    story s;
    s.fails("a", 1, limits::order_uncertain);
    SUBCASE("within what the order is worth") {
      s.fails("b", -9);
      CHECK(s.passes(1s) == "b/0: code -9, a/0: code 1");
    }
    SUBCASE("but not long after") {
      s.now += 1ms;
      s.fails("b", -9);
      CHECK(s.passes(1s) == "a/0: code 1, b/0: code -9");
    }
    SUBCASE("nor when a library ends the process because a peer is gone") {
      s.fails("b", -6);
      CHECK(s.passes(1s) == "a/0: code 1, b/0: code -6");
    }
  }

  TEST_CASE("no node can say that it failed before the generation was there") {
    story s(10ms);
    s.fails("a", 1, 9ms);
    s.fails("b", 1, std::chrono::hours(1'000'000));
    CHECK(s.passes(1s) == "b/0: code 1, a/0: code 1");
    // So a sudden end at once is not too late.
    story t(1ms);
    t.fails("a", -9);
    t.fails("b", 1, 24h);
    CHECK(t.passes(1s) == "a/0: code -9, b/0: code 1");
  }
}
