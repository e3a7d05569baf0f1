#include "runtime/tcpstore/keyspace.hpp"

#include "runtime/tcpstore/limits.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

using namespace troupe;
using namespace troupe::tcpstore;

namespace {

struct small_store {
  explicit small_store(std::size_t limit = 10'000) : room(limit), keys(room) {}
  std::string value(const char* key) const {
    const auto* v = keys.find(key);
    return v ? *v : "(missing)";
  }
  budget room;
  keyspace keys;
};

} // namespace

TEST_SUITE("store keyspace: values") {
  TEST_CASE("set, replace, append, erase") {
    small_store s;
    CHECK(s.value("k") == "(missing)");
    CHECK(s.keys.set("k", "one"));
    CHECK(s.keys.set("k", "two"));
    CHECK(s.keys.append("k", "three"));
    CHECK(s.keys.append("new", "x"));
    CHECK(s.value("k") == "twothree");
    CHECK(s.keys.size() == 2);
    CHECK(s.keys.erase("k"));
    CHECK_FALSE(s.keys.erase("k"));
    CHECK(s.keys.erase("new"));
    CHECK(s.keys.size() == 0);
    CHECK(s.room.used() == 0);
  }

  TEST_CASE("compare_set stores where the expectation is met, and says what is there") {
    small_store s;
    CHECK(s.keys.compare_set("k", "other", "v")->now == "other"); // torch's echo
    CHECK(s.value("k") == "(missing)");
    CHECK(s.keys.compare_set("k", "", "v")->stored);
    CHECK(s.keys.compare_set("k", "other", "w")->now == "v");
    CHECK_FALSE(s.keys.compare_set("k", "other", "w")->stored);
    CHECK(s.keys.compare_set("k", "v", "w")->now == "w");
    CHECK(s.value("k") == "w");
  }

  TEST_CASE("counters are decimal text, read as torch reads it") {
    const std::vector<std::tuple<const char*, std::int64_t, const char*>> table = {
        {"5", 2, "7"},
        {"-5", 2, "-3"},
        {"12abc", 1, "13"},
        {" 7", 1, "8"},
        {"+3", 1, "4"},
        {"0x10", 1, "1"},
        {"9223372036854775807", 1, "-9223372036854775808"},
        {"\n\t4 ", 1, "5"}};
    for (const auto& row : table) {
      const auto& [before, delta, after] = row;
      CAPTURE(std::get<0>(row)); // clang captures no structured binding
      small_store s;
      REQUIRE(s.keys.set("n", before));
      CHECK(std::to_string(s.keys.add("n", delta).value()) == after);
      CHECK(s.value("n") == after);
    }
    small_store s;
    CHECK(s.keys.add("fresh", -4).value() == -4);
    for (const char* bad : {"", "abc", " ", "-", "+", "+-3", "99999999999999999999"}) {
      CAPTURE(bad);
      REQUIRE(s.keys.set("n", bad));
      CHECK(s.keys.add("n", 1).error().code == errc::invalid);
      CHECK(s.value("n") == bad);
    }
  }

  TEST_CASE("keys are listed in order") {
    small_store s;
    for (const char* key : {"b", "a", "c"})
      REQUIRE(s.keys.set(key, ""));
    std::string all;
    s.keys.for_each_key([&all](std::string_view key) { all += key; });
    CHECK(all == "abc");
    CHECK(s.keys.listed_bytes() == 3 * (8 + 1));
  }
}

TEST_SUITE("store keyspace: queues") {
  TEST_CASE("first in, first out; a name may be a queue and a key") {
    small_store s;
    CHECK(s.keys.push("q", "1"));
    CHECK(s.keys.push("q", "2"));
    CHECK(s.keys.set("q", "value"));
    CHECK(s.keys.length("q") == 2);
    CHECK(s.keys.pop("q") == "1");
    CHECK(s.keys.pop("q") == "2");
    CHECK_FALSE(s.keys.pop("q"));
    CHECK(s.keys.length("q") == 0);
    CHECK(s.keys.size() == 1);
    CHECK(s.keys.erase("q"));
    CHECK(s.room.used() == 0);
  }
}

TEST_SUITE("store keyspace: memory") {
  TEST_CASE("what does not fit changes nothing") {
    small_store s(1'000);
    REQUIRE(s.keys.set("k", std::string(500, 'x')));
    const auto used = s.room.used();
    CHECK(s.keys.set("k2", std::string(500, 'x')).error().code == errc::overloaded);
    CHECK(s.keys.set("k", std::string(5'000, 'x')).error().code == errc::overloaded);
    CHECK(s.keys.append("k", std::string(500, 'x')).error().code == errc::overloaded);
    CHECK(s.keys.push("q", std::string(500, 'x')).error().code == errc::overloaded);
    CHECK(s.keys.compare_set("k2", "", std::string(900, 'x')).error().code == errc::overloaded);
    CHECK(s.room.used() == used);
    CHECK(s.keys.size() == 1);
    // Room that is given back can be used again.
    CHECK(s.keys.set("k", "small"));
    CHECK(s.keys.set("k2", std::string(500, 'x')));
  }

  TEST_CASE("values that grow piece by piece take no more memory than is counted") {
    budget room(1u << 20);
    keyspace keys(room);
    const std::string piece(1'000, 'x');
    bool full = false;
    for (int i = 0; !full; ++i)
      full = !keys.append("k" + std::to_string(i % 7), piece);
    std::size_t taken = 0;
    for (int i = 0; i < 7; ++i)
      taken += keys.find("k" + std::to_string(i))->capacity();
    CHECK(taken <= room.used());
    CHECK(room.used() <= room.limit());
    CHECK(taken > room.limit() / 2);
    for (int i = 0; i < 7; ++i) {
      CHECK(keys.set("k" + std::to_string(i), "small"));
      CHECK(keys.find("k" + std::to_string(i))->capacity() < 100);
      CHECK(keys.erase("k" + std::to_string(i)));
    }
    CHECK(room.used() == 0);
  }

  TEST_CASE("a value that grew beyond what can be answered is not allowed to") {
    budget room(3 * limits::store_answer_max);
    keyspace keys(room);
    const std::string chunk(limits::store_answer_max / 2, 'x');
    REQUIRE(keys.append("k", chunk));
    CHECK(keys.append("k", chunk).error().code == errc::overloaded);
  }
}
