#include "diag/stacks/rank_set.hpp"

#include "runtime/base/random.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace troupe;
using namespace troupe::diag;

namespace {

rank_set of(const std::set<std::uint32_t>& ranks) {
  rank_set out;
  for (const auto r : ranks)
    out.add(r);
  return out;
}

std::set<std::uint32_t> some_ranks(random_source& chance) {
  std::set<std::uint32_t> out;
  for (auto n = chance.below(20); n > 0; --n)
    out.insert(static_cast<std::uint32_t>(chance.below(24)));
  return out;
}

std::set<std::uint32_t> members(const rank_set& s) {
  std::set<std::uint32_t> out;
  for (const auto& r : s.runs())
    for (auto rank = r.first; rank <= r.last; ++rank)
      out.insert(rank);
  return out;
}

} // namespace

TEST_CASE("ranks are folded as xpu_timer folds them") {
  CHECK(rank_set{}.text().empty());
  CHECK(of({0, 1, 2, 5, 6, 7}).text() == "0-2/5-7");
  CHECK(of({3}).text() == "3");
  CHECK(of({0, 2, 4}).text(2) == "0/2/...");
  CHECK(of({0, 2, 4}).text(3) == "0/2/4");
  CHECK(of({3, 4}).missing_of(rank_set::below(8)).text() == "0-2/5-7");
}

TEST_CASE("a set is the same as one of single numbers, in whatever order they come") {
  random_source chance(17);
  for (int round = 0; round < 2'000; ++round) {
    const auto a = some_ranks(chance), b = some_ranks(chance);
    rank_set mixed;
    for (auto rank = a.rbegin(); rank != a.rend(); ++rank)
      mixed.add(*rank);
    CHECK(mixed == of(a));
    CHECK(members(mixed) == a);
    CHECK(mixed.size() == a.size());
    auto both = a;
    both.insert(b.begin(), b.end());
    auto joined = of(a);
    joined.add(of(b));
    CHECK(joined == of(both));
    std::set<std::uint32_t> absent;
    for (const auto rank : b)
      if (a.count(rank) == 0)
        absent.insert(rank);
    CHECK(members(of(a).missing_of(of(b))) == absent);
    for (std::uint32_t rank = 0; rank < 24; ++rank)
      CHECK(mixed.has(rank) == (a.count(rank) > 0));
  }
}

TEST_CASE("only a run behind all others, with a gap, is appended") {
  auto s = of({0, 1});
  CHECK_FALSE(s.append({2, 3}));
  CHECK_FALSE(s.append({5, 4}));
  CHECK_FALSE(s.append({1, 1}));
  CHECK(s.append({3, 3}));
  CHECK(s.text() == "0-1/3");
}
