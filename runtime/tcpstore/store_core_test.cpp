#include "runtime/tcpstore/store_core.hpp"

#include "runtime/tcpstore/testing/requests.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::tcpstore;
using namespace troupe::tcpstore::testing;

namespace {

/// A store, and clients that read everything at once unless they are told not to.
struct stage {
  explicit stage(const bounds& of = {}) : core(of) {}

  client_id joins() {
    const auto who = core.connected().value();
    CHECK(says(who, hello()).empty());
    return who;
  }

  /// What it hears at once.
  std::string says(client_id who, const std::string& bytes) {
    core.received(who, bytes);
    return hears(who);
  }

  /// What has come for it since.
  std::string hears(client_id who) {
    look();
    const std::string all(core.answers(who));
    core.sent(who, all.size());
    look();
    return all;
  }

  void look() {
    for (const auto& c : core.take_changes().closed)
      closed += (closed.empty() ? "" : "; ") + std::to_string(c.who) + ": " + c.why;
  }

  store_core core;
  std::string closed;
};

const std::string ready(1, '\0'), not_ready(1, '\1'), cancelled(1, '\1');

} // namespace

TEST_SUITE("store core: one client") {
  TEST_CASE("each request and its answer") {
    stage s;
    const auto a = s.joins();
    CHECK(s.says(a, ping(7)) == u32(7));
    CHECK(s.says(a, set("k", "v")) == "");
    CHECK(s.says(a, get("k")) == text("v"));
    CHECK(s.says(a, get("missing")) == text(""));
    CHECK(s.says(a, add("n", 5) + add("n", -7)) == i64(5) + i64(-2));
    CHECK(s.says(a, compare_set("k", "v", "w")) == text("w"));
    CHECK(s.says(a, append("k", "x") + get("k")) == text("wx"));
    CHECK(s.says(a, check({"k", "n"}) + check({"k", "no"}) + check({})) ==
          ready + not_ready + ready);
    CHECK(s.says(a, multi_set({{"a", "1"}, {"b", "2"}}) + multi_get({"b", "no", "a"})) ==
          text("2") + text("") + text("1"));
    CHECK(s.says(a, op(operation::num_keys)) == i64(4));
    CHECK(s.says(a, op(operation::list_keys)) ==
          i64(4) + text("a") + text("b") + text("k") + text("n"));
    CHECK(s.says(a, erase("k") + erase("k")) == i64(1) + i64(0));
    CHECK(s.says(a, push("q", "1") + push("q", "2") + length("q")) == i64(2));
    CHECK(s.says(a, check({"q"}) + pop("q") + pop("q") + pop("q") + check({"q"})) ==
          ready + i64(2) + text("1") + i64(1) + text("2") + i64(0) + not_ready);
    CHECK(s.says(a, barrier("alone", 1) + get("alone")) == ready + text("1"));
    CHECK(s.closed.empty());
  }

  TEST_CASE("requests may come in any pieces") {
    stage s;
    const auto a = s.core.connected().value();
    const auto all = hello() + set("key", "value") + get("key") + add("n", 1);
    std::string heard;
    for (const char c : all)
      heard += s.says(a, std::string(1, c));
    CHECK(heard == text("value") + i64(1));
    CHECK(s.core.traffic() == 0);
  }

  TEST_CASE("what is wrong ends the connection, with one line") {
    const std::vector<std::pair<std::string, std::string>> table = {
        {std::string(1, 99), "there is no operation 99"},
        {set("k", "abc") + add("k", 1), "it wants to add to a value that is no number"},
        {op(operation::get) + i64(1 << 20), "a key of 1048576 bytes; 8192 are allowed"},
        {set("k", "abc") + barrier("k", 2), "it wants to add to a value that is no number"},
    };
    for (const auto& [bytes, why] : table) {
      stage s;
      const auto a = s.joins();
      s.says(a, bytes + set("never", "read"));
      CHECK(s.closed == "0: " + why);
      CHECK_FALSE(s.core.wants_input(a));
      CHECK(s.says(a, set("never", "read")) == "");
      s.core.disconnected(a);
      CHECK(s.core.clients() == 0);
      CHECK(s.core.traffic() == 0);
      CHECK(s.says(s.joins(), check({"never"})) == not_ready);
    }
  }
}

TEST_SUITE("store core: waiting") {
  TEST_CASE("for keys that others set, in every way there is") {
    const std::vector<std::pair<const char*, std::string>> ways = {
        {"set", set("k", "v")},
        {"add", add("k", 1)},
        {"append", append("k", "v")},
        {"compare_set", compare_set("k", "", "v")},
        {"multi_set", multi_set({{"x", "y"}, {"k", "v"}})},
        {"queue_push", push("k", "v")},
    };
    for (const auto& each : ways) {
      const auto& [name, way] = each;
      CAPTURE(each.first); // clang captures no structured binding
      stage s;
      const auto a = s.joins(), b = s.joins(), c = s.joins();
      CHECK(s.says(a, wait({"k"})) == "");
      s.says(b, set("other", "v"));
      CHECK(s.hears(a) == "");
      s.says(c, way);
      CHECK(s.hears(a) == ready);
      CHECK(s.says(a, wait({"k"})) == ready);
      CHECK(s.core.traffic() == 0);
    }
  }

  TEST_CASE("a compare_set that stores nothing wakes no client") {
    stage s;
    const auto a = s.joins(), b = s.joins();
    s.says(a, wait({"k"}));
    CHECK(s.says(b, compare_set("k", "something", "v")) == text("something"));
    CHECK(s.hears(a) == "");
  }

  TEST_CASE("for several keys: until the last has come, also if one is named twice") {
    stage s;
    const auto a = s.joins(), b = s.joins();
    s.says(b, set("there", ""));
    CHECK(s.says(a, wait({"x", "there", "y", "x"})) == "");
    s.says(b, set("x", ""));
    CHECK(s.hears(a) == "");
    s.says(b, erase("x") + set("y", ""));
    CHECK(s.hears(a) == ready); // x has been there
  }

  TEST_CASE("given up: cancelled; and if the key came first, both are heard") {
    stage s;
    const auto a = s.joins(), b = s.joins();
    s.says(a, wait({"k"}));
    CHECK(s.says(a, cancel()) == cancelled);
    s.says(b, set("k", ""));
    CHECK(s.hears(a) == "");
    s.says(a, wait({"l"}));
    s.core.received(b, set("l", ""));
    s.core.received(a, cancel());
    CHECK(s.hears(a) == ready + cancelled);
    CHECK(s.core.traffic() == 0);
  }

  TEST_CASE("answers follow the order of requests: behind a wait everything waits") {
    stage s;
    const auto a = s.joins(), b = s.joins();
    CHECK(s.says(a, wait({"k"}) + get("k") + wait({"l"}) + get("l") + ping(1)) == "");
    s.says(b, set("k", "v"));
    CHECK(s.hears(a) == ready + text("v"));
    s.says(b, set("l", "w"));
    CHECK(s.hears(a) == ready + text("w") + u32(1));
  }

  TEST_CASE("one client's held back request may be what the next one waits for") {
    stage s;
    const auto a = s.joins(), b = s.joins(), c = s.joins();
    s.says(a, wait({"1"}) + set("2", ""));
    s.says(b, wait({"2"}) + set("3", ""));
    CHECK(s.says(c, set("1", "") + wait({"3"})) == ready);
    CHECK(s.hears(a) == ready);
    CHECK(s.hears(b) == ready);
  }

  TEST_CASE("a push wakes one, in order of arrival; a set wakes all") {
    stage s;
    const auto a = s.joins(), b = s.joins(), c = s.joins();
    s.says(a, wait({"q"}));
    s.says(b, wait({"q"}));
    s.says(c, push("q", "1"));
    CHECK(s.hears(a) == ready);
    CHECK(s.hears(b) == "");
    CHECK(s.says(a, pop("q")) == i64(1) + text("1"));
    s.says(a, wait({"q"}));
    s.says(c, push("q", "2"));
    CHECK(s.hears(b) == ready);
    CHECK(s.hears(a) == "");
    s.says(b, pop("q"));
    s.says(b, wait({"q"}));
    s.says(c, set("q", ""));
    CHECK(s.hears(a) == ready);
    CHECK(s.hears(b) == ready);
  }

  TEST_CASE("a client that leaves while it waits is forgotten") {
    stage s;
    const auto a = s.joins(), b = s.joins();
    s.says(a, wait({"k", "l"}));
    s.core.disconnected(a);
    CHECK(s.core.traffic() == 0);
    const auto again = s.joins();
    CHECK(again == a);
    s.says(b, set("k", "") + set("l", ""));
    CHECK(s.hears(again) == "");
  }
}

TEST_SUITE("store core: barriers") {
  TEST_CASE("all leave together when the last has come") {
    stage s;
    std::vector<client_id> all;
    for (int i = 0; i < 100; ++i)
      all.push_back(s.joins());
    for (int i = 0; i < 99; ++i)
      CHECK(s.says(all[static_cast<std::size_t>(i)], barrier("b", 100)) == "");
    CHECK(s.says(all.back(), barrier("b", 100)) == ready);
    for (int i = 0; i < 99; ++i)
      CHECK(s.hears(all[static_cast<std::size_t>(i)]) == ready);
    CHECK(s.says(all[0], get("b")) == text("100"));
    // It is complete for good.
    CHECK(s.says(all[0], barrier("b", 100)) == ready);
  }

  TEST_CASE("a client that gives up has been counted, as with torch") {
    stage s;
    const auto a = s.joins(), b = s.joins();
    s.says(a, barrier("b", 2));
    CHECK(s.says(a, cancel()) == cancelled);
    CHECK(s.says(b, barrier("b", 2)) == ready);
    CHECK(s.hears(a) == "");
  }
}

TEST_SUITE("store core: bounds") {
  TEST_CASE("memory for keys: a client that exceeds it is disconnected, the others stay") {
    bounds b;
    b.memory_max = 2'000;
    stage s(b);
    const auto a = s.joins(), c = s.joins();
    s.says(a, set("k", std::string(1'000, 'x')));
    s.says(a, set("l", std::string(1'000, 'x')));
    CHECK(s.closed == "0: the store would hold more than 2000 bytes");
    CHECK(s.says(c, get("k")).size() == 8 + 1'000);
  }

  TEST_CASE("a client that does not read is served no further, and later goes on") {
    bounds b;
    b.answers_pause = 1'000;
    b.held_back_max = 1'000;
    stage s(b);
    const auto a = s.joins();
    s.says(a, set("k", std::string(500, 'x')));
    std::string burst;
    for (int i = 0; i < 200; ++i)
      burst += get("k");
    s.core.received(a, burst);
    CHECK(s.core.answers(a).size() == 2 * (8 + 500));
    CHECK_FALSE(s.core.wants_input(a));
    s.look();
    std::size_t heard = 0;
    bool resumed = false;
    while (!s.core.answers(a).empty()) {
      heard += s.core.answers(a).size();
      CHECK(s.core.answers(a).size() < 2'000);
      s.core.sent(a, s.core.answers(a).size());
      resumed = resumed || !s.core.take_changes().resumed.empty();
    }
    CHECK(heard == 200 * (8 + 500));
    CHECK(resumed);
    CHECK(s.core.wants_input(a));
    CHECK(s.core.traffic() == 0);
  }

  TEST_CASE("what a waiting client sends is read up to a bound only") {
    bounds b;
    b.held_back_max = 1'000;
    stage s(b);
    const auto a = s.joins(), c = s.joins();
    s.says(a, wait({"k"}));
    CHECK(s.core.wants_input(a));
    s.says(a, set("big", std::string(2'000, 'x')));
    CHECK_FALSE(s.core.wants_input(a));
    s.core.received(c, set("k", ""));
    CHECK(s.core.take_changes().resumed == std::vector<client_id>{a});
    CHECK(s.core.wants_input(a));
    CHECK(s.says(c, check({"big"})) == ready);
  }

  TEST_CASE("traffic: half requests, waits and answers are counted together") {
    bounds b;
    b.traffic_max = 10'000;
    stage s(b);
    const auto a = s.joins(), c = s.joins(), d = s.joins();
    s.says(a, set("k", std::string(9'000, 'x')));
    s.core.received(c, get("k"));
    CHECK(s.closed.empty());
    s.core.received(d, set("half", std::string(5'000, 'x')).substr(0, 4'000));
    s.look();
    CHECK(s.closed == "2: too much is on its way to this store and from it");
    s.core.disconnected(d);
    CHECK(s.hears(c).size() == 9'008);
    CHECK(s.core.traffic() == 0);
  }

  TEST_CASE("an answer may not be larger than allowed") {
    bounds b;
    b.answer_max = 1'000;
    stage s(b);
    const auto a = s.joins();
    s.says(a, set("k", std::string(400, 'x')) + multi_get({"k", "k", "k"}));
    CHECK(s.closed == "0: an answer of 1224 bytes; 1000 are allowed");
  }

  TEST_CASE("there are not more clients than allowed") {
    bounds b;
    b.clients_max = 2;
    stage s(b);
    s.joins();
    const auto a = s.joins();
    CHECK_FALSE(s.core.connected());
    s.core.disconnected(a);
    CHECK(s.core.connected() == a);
  }
}
