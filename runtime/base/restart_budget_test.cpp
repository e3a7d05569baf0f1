#include "runtime/base/restart_budget.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace troupe;

namespace {

const instant zero{};

/// What is spent at each of these seconds, and what has been used by then: "yes 1" or "no 1".
std::string spends(restart_budget of, const std::vector<int>& at) {
  std::string said;
  for (const int s : at) {
    const auto now = zero + std::chrono::seconds(s);
    said += said.empty() ? "" : ", ";
    said += of.spend(now) ? "yes " : "no ";
    said += std::to_string(of.used(now));
  }
  return said;
}

} // namespace

TEST_CASE("restart_budget: so many within a period, which slides") {
  struct row {
    unsigned allowed;
    duration period;
    std::vector<int> at;
    const char* said;
  };
  const row table[] = {
      {0, 60s, {0, 100}, "no 0, no 0"},
      {1, 60s, {0, 1}, "yes 1, no 1"},
      // To the instant: the period itself still counts, what is behind it does not.
      {1, 60s, {0, 60, 61}, "yes 1, no 1, yes 1"},
      {2, 60s, {0, 50, 55, 61, 62, 111}, "yes 1, yes 2, no 2, yes 2, no 2, yes 2"},
      // One that was refused has not happened: it takes no room from those behind it.
      {1, 60s, {0, 30, 59, 61}, "yes 1, no 1, no 1, yes 1"},
      {3, 60s, {0, 100, 200, 300}, "yes 1, yes 1, yes 1, yes 1"},
      {2, for_life, {0, 1'000, 1'000'000}, "yes 1, yes 2, no 2"},
      {0, for_life, {5}, "no 0"},
  };
  for (const auto& r : table) {
    CAPTURE(r.allowed);
    CAPTURE(in_words(r.period));
    CHECK(spends(restart_budget(r.allowed, r.period), r.at) == r.said);
  }
}

TEST_CASE("restart_budget: what is used is forgiven without being asked for") {
  restart_budget b(3, 60s);
  CHECK(b.spend(zero));
  CHECK(b.spend(zero + 30s));
  CHECK(b.used(zero + 60s) == 2);
  CHECK(b.used(zero + 61s) == 1);
  CHECK(b.used(zero + 91s) == 0);
  CHECK(b.allowed() == 3);
  CHECK(b.period() == 60s);
}

TEST_CASE("restarts_by_name: each name has the whole budget, for life") {
  restarts_by_name c(2);
  CHECK(c.count("a"));
  CHECK(c.count("a"));
  CHECK_FALSE(c.count("a"));
  CHECK(c.used("a") == 2);
  CHECK(c.used_up("a"));
  CHECK(c.count("b"));
  CHECK_FALSE(c.used_up("b"));
  CHECK(c.used() == std::map<std::string, unsigned>{{"a", 2}, {"b", 1}});
}

TEST_CASE("restarts_by_name: a name that is only asked about, or refused, has no entry") {
  restarts_by_name c(0);
  CHECK(c.used("a") == 0);
  CHECK(c.used_up("a"));
  CHECK_FALSE(c.count("a"));
  CHECK(c.used().empty());
}

TEST_CASE("restarts_by_name: more may be allowed later, and never less") {
  restarts_by_name c(0);
  CHECK_FALSE(c.count("a"));
  c.allow_at_least(2);
  c.allow_at_least(1);
  CHECK(c.allowed() == 2);
  CHECK(c.count("a"));
  CHECK(c.count("a"));
  CHECK_FALSE(c.count("a"));
}

TEST_CASE("restarts_by_name: an earlier life counts, even one with a larger budget") {
  restarts_by_name c(2, {{"a", 1}});
  c.recall("b", 5);
  CHECK(c.count("a"));
  CHECK_FALSE(c.count("a"));
  CHECK_FALSE(c.count("b"));
  CHECK(c.used("b") == 5);
}
