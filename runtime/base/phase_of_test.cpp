#include "runtime/base/phase_of.hpp"

#include <doctest/doctest.h>

#include <string>
#include <type_traits>

using namespace troupe;

namespace {

struct door {
  enum class phase : std::uint8_t { open, shut, locked, bricked_up };
  static constexpr phase_table<phase> table{"a door",
                                            {
                                                {phase::open, "open", {phase::shut}},
                                                {phase::shut, "shut", {phase::open, phase::locked}},
                                                {phase::locked, "locked", {phase::shut}},
                                            }};
  phase_of<table> now{phase::open};
};

std::string refusal(door::phase from, door::phase to) {
  phase_of<door::table> now(from);
  try {
    now.become(to);
  } catch (const invariant_broken& e) {
    return now == from ? e.what() : "refused, and changed";
  }
  return now == to ? "" : "accepted, and not changed";
}

} // namespace

TEST_CASE("phase_of: a phase changes along its table, and a step that is not there names both") {
  using p = door::phase;
  struct row {
    p from, to;
    const char* refusal;
  };
  const row rows[] = {
      {p::open, p::open, "a door that is open cannot become open"},
      {p::open, p::shut, ""},
      {p::open, p::locked, "a door that is open cannot become locked"},
      {p::shut, p::open, ""},
      {p::shut, p::shut, "a door that is shut cannot become shut"},
      {p::shut, p::locked, ""},
      {p::locked, p::open, "a door that is locked cannot become open"},
      {p::locked, p::shut, ""},
      // Without a row of its own: nothing leads there, and it leads nowhere.
      {p::locked, p::bricked_up, "a door that is locked cannot become unknown"},
      {p::bricked_up, p::open, "a door that is unknown cannot become open"},
  };
  for (const auto& r : rows)
    CHECK(refusal(r.from, r.to) == r.refusal);
}

TEST_CASE("phase_of: it reads like the enumeration") {
  door d;
  CHECK(d.now == door::phase::open);
  CHECK(d.now != door::phase::shut);
  CHECK(d.now < door::phase::shut);
  CHECK(d.now.in(door::phase::locked, door::phase::open));
  CHECK_FALSE(d.now.in(door::phase::locked, door::phase::shut));
  // Nothing is assigned past `become`, and each thing costs no more than its phase.
  static_assert(!std::is_assignable_v<decltype(d.now)&, door::phase>);
  static_assert(sizeof(d.now) == sizeof(door::phase));
  static_assert(door::table.leads(door::phase::open, door::phase::shut));
}

TEST_CASE("phase_table: one that does not follow its enumeration is refused") {
  using p = door::phase;
  using table = phase_table<p>;
  CHECK_NOTHROW(table("a door", {{p::open, "open", {p::open}}}));
  CHECK_THROWS_AS(table("a door", {{p::shut, "shut", {}}}), invariant_broken);
  CHECK_THROWS_AS(table("a door", {{p::open, "open", {}}, {p::open, "open", {}}}),
                  invariant_broken);
  CHECK_THROWS_AS(table("a door", {{p::open, "open", {p::shut}}}), invariant_broken);
}
