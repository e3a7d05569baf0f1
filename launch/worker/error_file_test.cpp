#include "launch/worker/error_file.hpp"

#include <doctest/doctest.h>

using namespace troupe::launch;

TEST_SUITE("error_file") {
  TEST_CASE("what @record writes today") {
    const auto e = read_error_file(
        R"({"message": {"message": "ValueError: no\nmore", "extraInfo": {"py_callstack":)"
        R"( "Traceback:\n  line 1\nValueError: no\n", "timestamp": "1700000001"}}})");
    REQUIRE(e);
    CHECK(e->line == "ValueError: no");
    CHECK(e->traceback == "Traceback:\n  line 1\nValueError: no\n");
    CHECK(e->unix_time_ms == 1'700'000'001'000);
  }

  TEST_CASE("what it wrote once, and what others write") {
    const auto flat = read_error_file(R"({"message": "flat\nmore", "timestamp": 1700000001})");
    REQUIRE(flat);
    CHECK(flat->line == "flat");
    CHECK(flat->traceback == "flat\nmore");
    CHECK(flat->unix_time_ms == 1'700'000'001'000);
    const auto little = read_error_file(R"({"message": {"message": "a", "extraInfo": {}}})");
    REQUIRE(little);
    CHECK(little->traceback == "a");
    CHECK_FALSE(little->unix_time_ms);
  }

  TEST_CASE("times that are none do not spoil the rest") {
    for (const auto* time : {R"("soon")", "-1", "1e300", "null", "[]", R"("")", R"("1x")"}) {
      const auto e = read_error_file(std::string(R"({"message": "a", "timestamp": )") + time + "}");
      REQUIRE_MESSAGE(e, time);
      CHECK_MESSAGE(!e->unix_time_ms, time);
    }
  }

  TEST_CASE("nothing else is an error file") {
    for (const auto* wrong : {"", "{", "[]", "{}", "3", R"("message")", R"({"message": 3})",
                              R"({"message": {"message": []}})", R"({"message": {}})"})
      CHECK_MESSAGE(!read_error_file(wrong), wrong);
  }

  TEST_CASE("passed on it has the exit code, and loses nothing else") {
    CHECK(with_error_code(R"({"message":{"message":"a","mine":[1]},"more":2})", -9) ==
          R"({"message":{"message":"a","mine":[1],"errorCode":-9},"more":2})");
    CHECK(with_error_code(R"({"message":"flat"})", 1) == R"({"message":"flat"})");
    CHECK(with_error_code("no JSON", 1) == "no JSON");
  }

  TEST_CASE("one that is made can be read") {
    const auto e = read_error_file(make_error_file("E: a", "Traceback\n\"x\"", 5'000, 7));
    REQUIRE(e);
    CHECK(e->line == "E: a");
    CHECK(e->traceback == "Traceback\n\"x\"");
    CHECK(e->unix_time_ms == 5'000);
  }
}
