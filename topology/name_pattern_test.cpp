#include "topology/name_pattern.hpp"

#include "topology/limits.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace troupe;
using namespace troupe::topology;

namespace {

bool fits(const std::string& pattern, const std::string& name) {
  const auto made = name_pattern::of(pattern);
  REQUIRE_MESSAGE(made.has_value(), pattern);
  std::uint64_t looks = 0;
  return made->fits(name, looks);
}

std::string wrong(const std::string& pattern) {
  const auto made = name_pattern::of(pattern);
  REQUIRE_FALSE(made.has_value());
  return made.error().what;
}

std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  while (times-- > 0)
    all += text;
  return all;
}

} // namespace

TEST_CASE("what fits: a part of the name, unless the pattern says where") {
  CHECK(fits("node", "my-node-7"));
  CHECK(fits("", "anything"));
  CHECK_FALSE(fits("^node", "my-node-7"));
  CHECK_FALSE(fits("node$", "my-node-7"));
  CHECK(fits("^node-[0-9]+$", "node-17"));
  CHECK_FALSE(fits("^node-[0-9]+$", "node-"));
  CHECK_FALSE(fits("^node-[0-9]+$", "node-1a"));
  CHECK(fits("^(a|bc)*d?$", "abcabc"));
  CHECK(fits("^(a|bc)*d?$", ""));
  CHECK_FALSE(fits("^(a|bc)*d?$", "abcb"));
  CHECK(fits("^(?:rack|row)-.$", "row-x"));
  CHECK(fits("^10\\.0\\.0\\.\\d{1,3}$", "10.0.0.255"));
  CHECK_FALSE(fits("^10\\.0\\.0\\.\\d{1,3}$", "10x0.0.1"));
  CHECK_FALSE(fits("^a{2,3}$", "a"));
  CHECK(fits("^a{2,3}$", "aaa"));
  CHECK_FALSE(fits("^a{2,3}$", "aaaa"));
  CHECK(fits("^a{2,}$", "aaaaa"));
  CHECK(fits("^a{2}$", "aa"));
  CHECK(fits("^[^a-c]$", "d"));
  CHECK_FALSE(fits("^[^a-c]$", "b"));
  CHECK(fits("^[]a-]+$", "a]-"));
  CHECK(fits("^a{x}$", "a{x}"));
  CHECK(fits("^a+?b*?$", "aab"));
  CHECK(fits("^(a*)*$", "aaaa"));
  CHECK(fits("^((a?)*)+$", ""));
}

TEST_CASE("what is not known, and what is no pattern") {
  CHECK(wrong("(a") == "a '(' has no ')'");
  CHECK(wrong("a)") == "a ')' has no '('");
  CHECK(wrong("[a") == "a '[' has no ']'");
  CHECK(wrong("*a") == "'*' repeats nothing");
  CHECK(wrong("a\\") == "it ends in a backslash");
  CHECK(wrong("\\b") == "'\\b' is not known");
  CHECK(wrong("(?i)a") == "of groups with '?' only (?:…) is known");
  CHECK(wrong("[[:alpha:]]") == "'[:' is not known");
  CHECK(wrong("[z-a]") == "'z-a' is no range");
  CHECK(wrong("a{3,2}") == "it repeats 3 to 2 times");
  CHECK(wrong("a{1001}") == "it repeats more than 1000 times");
  CHECK(wrong("((a{1000}){1000}){1000}") == "it repeats too much");
  CHECK(wrong(repeated("a", 256)) == "it has more than 255 characters");
}

TEST_CASE("no pattern keeps it busy: a step of the pattern is looked at once for each character") {
  const auto made = name_pattern::of("^" + repeated("(a*)*", 40) + "b$");
  REQUIRE(made.has_value());
  std::uint64_t looks = 0;
  CHECK_FALSE(made->fits(repeated("a", limits::name_max), looks));
  CHECK(looks <= (limits::name_max + 1) * limits::name_pattern_steps_max);
  CHECK(made->fits("aab", looks));
}

TEST_CASE("brackets to the end of what a pattern may have") {
  CHECK(fits(repeated("(", 120) + "a" + repeated(")", 120), "a"));
}
