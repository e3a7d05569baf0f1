#include "ckpt/copies/sending_plan.hpp"

#include "ckpt/limits.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <string>

using namespace troupe;
using namespace troupe::ckpt;

namespace {

copy_group group(std::uint32_t members, std::uint32_t parity, std::uint32_t me) {
  copy_group by;
  for (std::uint32_t i = 0; i < members; ++i)
    by.members.push_back({100 + i, fmt::format("10.0.0.{}:400", i)});
  by.parity = parity;
  by.me = me;
  return by;
}

} // namespace

TEST_CASE("addresses are read as they are written") {
  for (const ports::endpoint& where :
       {ports::endpoint{"10.0.0.1", 400}, ports::endpoint{"node-3.jobs", 65535},
        ports::endpoint{"fe80::1%eth0", 1}}) {
    const auto again = target_address(ports::to_string(where));
    REQUIRE(again);
    CHECK(*again == where);
  }
  for (const char* wrong :
       {"", ":", "a", "a:", ":1", "a:0", "a:65536", "a:1x", "a:-1", "::1:5", "[]:1", "[:1"}) {
    CAPTURE(wrong);
    CHECK_FALSE(target_address(wrong));
  }
}

TEST_CASE("a group that cannot be is refused") {
  CHECK_FALSE(sending_plan::make(group(1, 1, 0), 10));
  CHECK_FALSE(sending_plan::make(group(3, 0, 0), 10));
  CHECK_FALSE(sending_plan::make(group(3, 1, 3), 10));
  CHECK_FALSE(sending_plan::make(group(3, 1, 0), 0));
  CHECK_FALSE(sending_plan::make(group(3, 1, 0), limits::copy_snapshot_max + 1));
  auto twice = group(3, 1, 0);
  twice.members[2].address = twice.members[1].address;
  const auto made = sending_plan::make(twice, 10);
  REQUIRE_FALSE(made);
  CHECK(made.error().what == "two members of the group are at 10.0.0.1:400");
  CHECK(sending_plan::make(group(3, 1, 0), 10));
}

TEST_CASE("every piece goes to all targets of its stripe, part by part") {
  for (const auto& c : {code{2, 1}, code{3, 2}, code{4, 1}, code{5, 2}})
    for (std::uint32_t me = 0; me < c.members; ++me)
      for (const std::uint64_t bytes :
           {std::uint64_t{1}, std::uint64_t{100'003}, std::uint64_t{7 * limits::copy_part + 5}}) {
        auto plan = sending_plan::make(group(c.members, c.parity, me), bytes);
        REQUIRE(plan);
        // By target and stripe: how far it is.
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> given;
        while (const auto part = plan->next()) {
          auto& there = given[{part->member, part->stripe}];
          const auto piece = piece_of(c, me, part->stripe);
          REQUIRE(piece);
          CHECK(part->offset == there);
          CHECK(part->from == piece_in(c, bytes, *piece).from + there);
          CHECK(part->bytes <= limits::copy_part);
          there += part->bytes;
          plan->sent(*part);
          CHECK(plan->taken(part->member, part->bytes));
        }
        for (std::uint32_t stripe = 0; stripe < c.members; ++stripe)
          for (std::uint32_t row = 0; row < c.parity; ++row)
            if (const auto piece = piece_of(c, me, stripe)) {
              CHECK(given[{target(c, stripe, row), stripe}] == piece_in(c, bytes, *piece).bytes);
              CHECK(plan->all_sent(target(c, stripe, row)));
            }
      }
}

TEST_CASE("targets take turns, and each has a window of its own") {
  auto plan = sending_plan::make(group(4, 1, 0), 1'000 * limits::copy_part);
  REQUIRE(plan);
  CHECK(plan->targets() == std::vector<std::uint32_t>{1, 2, 3});
  std::vector<std::uint32_t> turns;
  std::map<std::uint32_t, std::uint64_t> on_the_way;
  while (const auto part = plan->next()) {
    turns.push_back(part->member);
    on_the_way[part->member] += part->bytes;
    plan->sent(*part);
  }
  const auto parts = limits::copy_window / limits::copy_part;
  REQUIRE(turns.size() == 3 * parts);
  for (std::size_t i = 0; i + 1 < turns.size(); ++i)
    CHECK(turns[i] != turns[i + 1]);
  for (const std::uint32_t member : {1, 2, 3})
    CHECK(on_the_way[member] == parts * limits::copy_part);
  CHECK(plan->taken(2, limits::copy_part));
  const auto next = plan->next();
  REQUIRE(next);
  CHECK(next->member == 2);
  CHECK_FALSE(plan->taken(1, limits::copy_window + 1));
}
