#include "runtime/base/generations.hpp"

#include <doctest/doctest.h>

using namespace troupe;

namespace {

constexpr term monday{1'763'935'000'123};
constexpr term tuesday{1'764'021'400'456};

} // namespace

TEST_CASE("within a term generations are counted up") {
  const auto first = next_generation({}, monday);
  CHECK(next_generation(first, monday) == first.next());
  CHECK(count_of(first) == 1);
  CHECK(count_of(first.next()) == 2);
}

TEST_CASE(
    "whatever a later term proposes is newer, also than what the earlier one proposes later") {
  auto older = next_generation({}, monday);
  const auto newer = next_generation({}, tuesday);
  for (int i = 0; i < 1'000; ++i)
    older = next_generation(older, monday);
  CHECK(older < newer);
  // Terms differ by a millisecond at least.
  CHECK(next_generation({}, monday) < next_generation({}, monday.next()));
}

TEST_CASE(
    "the count goes on under the next master, and from numbers of before terms were in them") {
  const auto third = next_generation(next_generation(next_generation({}, monday), monday), monday);
  CHECK(count_of(next_generation(third, tuesday)) == 4);
  CHECK(third < next_generation(third, tuesday));
  CHECK(count_of(next_generation(generation{17}, tuesday)) == 18);
}

TEST_CASE("no number is given twice, however many a term has, and whatever its clock says") {
  generation last;
  for (int i = 0; i < 10'000; ++i) {
    const auto next = next_generation(last, monday);
    REQUIRE(last < next);
    last = next;
  }
  // The clock was set back.
  const auto newer = next_generation({}, tuesday);
  CHECK(next_generation(newer, monday) == newer.next());
  CHECK(newer < next_generation(newer, term{UINT64_MAX}));
}

TEST_CASE("a number is exact in floating point until 2039") {
  CHECK(next_generation(generation{4'094}, term{2'177'452'800'000}).value < std::uint64_t{1} << 53);
}

TEST_CASE("in full it says whose it is, and can be read back") {
  const auto seventh = next_generation(generation{6}, monday);
  CHECK(in_full(seventh) == "generation 7 of term 1763935000123");
  CHECK(in_full(generation{7}) == "generation 7");
  for (const auto g : {seventh, generation{7}, generation{}, next_generation({}, term{2})})
    CHECK(generation_in(in_full(g)) == g);
  for (const char* other : {"rank 7", "generation ", "generation 7 of term", "generation x",
                            "generation 7 of term 1", "generation 07", "generation 4097"})
    CHECK_FALSE(generation_in(other));
}
