#include "launch/options/values.hpp"

#include "launch/options/streams.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace troupe::launch;

TEST_CASE("whole numbers are Python's") {
  CHECK(python_int(" 7\n") == 7);
  CHECK(python_int("-1_000") == -1000);
  CHECK(python_int("+0") == 0);
  CHECK(python_int("99999999999999999999") == INT64_MAX);
  for (const auto* wrong : {"", " ", "-", "1.0", "0x10", "_1", "1_", "1__0", "--1", "1 2", "+-1"})
    CHECK_MESSAGE(!python_int(wrong), wrong);
}

TEST_CASE("fractions are Python's") {
  CHECK(python_float("1e-3") == 0.001);
  CHECK(python_float(" .5 ") == 0.5);
  CHECK(python_float("5.") == 5);
  CHECK(python_float("-1_0.2") == -10.2);
  CHECK(std::isinf(*python_float("Infinity")));
  CHECK(std::isinf(*python_float("1e999")));
  CHECK(python_float("1e-999") == 0);
  CHECK(std::isnan(*python_float("NaN")));
  for (const auto* wrong : {"", "x", "1e", "0x1p3", "1..2", "+-1", "-_1", "nan(1)"})
    CHECK_MESSAGE(!python_float(wrong), wrong);
}

TEST_CASE("a choice of streams is one for all, or one for each rank that is named") {
  const auto all = parse_stream_choice("--tee", "3");
  REQUIRE(all);
  CHECK(all->of(0) == std_streams{true, true});
  CHECK(all->of(1000) == std_streams{true, true});
  const auto some = parse_stream_choice("--tee", "0:1,12:2,0:3");
  REQUIRE(some);
  CHECK(some->of(0) == std_streams{true, true});
  CHECK(some->of(12) == std_streams{false, true});
  CHECK(some->of(1) == std_streams{});
  CHECK(some->any());
  CHECK_FALSE(parse_stream_choice("--tee", "0")->any());
  CHECK_FALSE(parse_stream_choice("--tee", "0:0")->any());
  for (const auto* wrong :
       {"", "4", "33", "-1", "0:", ":1", "0:1,", "0:4", "0:1 ,1:1", "1024:3", "x:1"})
    CHECK_MESSAGE(!parse_stream_choice("--tee", wrong), wrong);
}

TEST_CASE("a rank filter is a list of numbers; those that cannot be name no rank") {
  CHECK_FALSE(parse_rank_filter("")->has_value());
  CHECK(**parse_rank_filter("2, 0,2") == std::set<std::uint32_t>{0, 2});
  CHECK((*parse_rank_filter("-1"))->empty());
  for (const auto* wrong : {",", "0,", "a", "0:1"})
    CHECK_MESSAGE(!parse_rank_filter(wrong), wrong);
}

TEST_CASE("words are split at single commas") {
  using words = std::vector<std::string>;
  CHECK(parse_words("a,b c") == words{"a", "b c"});
  CHECK(parse_words("a,,b,c") == words{"a,b", "c"});
  CHECK(parse_words(",,,") == words{",", ""});
  CHECK(parse_words("") == words{""});
}
