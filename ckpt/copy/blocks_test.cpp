#include "ckpt/copy/blocks.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace troupe::ckpt;

namespace {

constexpr std::uint64_t mib = 1u << 20, page = block_plan::page_bytes;

char* at(std::uint64_t address) {
  return reinterpret_cast<char*>(address); // never read
}

piece of(std::uint64_t from, std::uint64_t bytes, std::uint64_t to = 1u << 30) {
  return {at(to), at(from), bytes};
}

std::uint64_t bytes_of(const block_plan& plan) {
  std::uint64_t all = 0;
  for (const auto& p : plan.at_once)
    all += p.bytes;
  for (const auto& b : plan.blocks)
    all += b.bytes;
  return all;
}

} // namespace

TEST_CASE("small pieces are copied at once") {
  const auto plan = block_plan::divide({of(10 * mib, mib - 1), of(20 * mib, 0)});
  CHECK(plan.blocks.empty());
  CHECK(plan.ranges.empty());
  CHECK(plan.at_once.size() == 2);
  CHECK(bytes_of(plan) == mib - 1);
}

TEST_CASE("pages that a piece shares with others are copied at once") {
  const auto plan = block_plan::divide({of(10 * mib + 64, 4 * mib)});
  REQUIRE(plan.ranges.size() == 1);
  CHECK(plan.ranges[0].begin == at(10 * mib + page));
  CHECK(plan.ranges[0].end == at(14 * mib));
  CHECK(bytes_of(plan) == 4 * mib);
  REQUIRE(plan.at_once.size() == 2);
  CHECK(plan.at_once[0].bytes == page - 64);
  CHECK(plan.at_once[1].bytes == 64);
  CHECK(plan.at_once[1].from == at(14 * mib));
}

TEST_CASE("blocks are huge pages where those are whole, and go where their piece goes") {
  const auto plan = block_plan::divide({of(11 * mib, 4 * mib, 1000 * mib)});
  REQUIRE(plan.blocks.size() == 3);
  CHECK(plan.blocks[0].bytes == mib);
  CHECK(plan.blocks[1].bytes == 2 * mib);
  CHECK(plan.blocks[1].from == at(12 * mib));
  CHECK(plan.blocks[1].to == at(1001 * mib));
  CHECK(plan.blocks[2].bytes == mib);
  CHECK(plan.ranges[0].first_block == 0);
  CHECK(plan.ranges[0].blocks == 3);
}

TEST_CASE("an address finds its block, and no other finds one") {
  const auto plan =
      block_plan::divide({of(30 * mib, 2 * mib), of(11 * mib, 4 * mib)}); // in any order
  CHECK_FALSE(plan.find(at(11 * mib - 1)));
  CHECK(plan.find(at(11 * mib)) == 0);
  CHECK(plan.find(at(12 * mib - 1)) == 0);
  CHECK(plan.find(at(12 * mib)) == 1);
  CHECK(plan.find(at(15 * mib - 1)) == 2);
  CHECK_FALSE(plan.find(at(15 * mib)));
  CHECK(plan.find(at(31 * mib)) == 3);
  CHECK_FALSE(plan.find(at(32 * mib)));
  CHECK_FALSE(block_plan{}.find(at(mib)));
}

TEST_CASE(
    "whatever the pieces are, every byte is copied once, and only whole pages are protected") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 chance(seed);
    std::vector<piece> pieces;
    std::uint64_t address = 100 * mib, total = 0;
    for (int i = 0; i < 20; ++i) {
      address += chance() % (3 * mib);
      const auto bytes = chance() % (8 * mib);
      pieces.push_back(of(address, bytes, address + (1u << 30)));
      address += bytes;
      total += bytes;
    }
    std::shuffle(pieces.begin(), pieces.end(), chance);
    const auto plan = block_plan::divide(pieces);
    CHECK(bytes_of(plan) == total);
    std::uint64_t last = 0;
    for (const auto& b : plan.blocks) {
      const auto from = reinterpret_cast<std::uintptr_t>(b.from);
      REQUIRE(from >= last);
      REQUIRE(b.bytes > 0);
      REQUIRE(b.bytes % page == 0);
      REQUIRE(from % page == 0);
      REQUIRE(from / block_plan::block_bytes == (from + b.bytes - 1) / block_plan::block_bytes);
      REQUIRE(reinterpret_cast<std::uintptr_t>(b.to) == from + (1u << 30));
      last = from + b.bytes;
    }
  }
}
