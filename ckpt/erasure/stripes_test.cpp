#include "ckpt/erasure/stripes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

using namespace troupe::ckpt;

namespace {

std::vector<code> valid_codes(std::uint32_t most_members = code::members_max) {
  std::vector<code> found;
  for (std::uint32_t members = 2; members <= most_members; ++members)
    for (std::uint32_t parity = 1; parity < members; ++parity)
      if (check({members, parity}))
        found.push_back({members, parity});
  return found;
}

/// Sums by hand: shift and reduce.
std::uint8_t product(unsigned a, unsigned b) {
  unsigned sum = 0;
  for (; b != 0; b >>= 1) {
    if ((b & 1) != 0)
      sum ^= a;
    a = a << 1 ^ ((a & 0x80) != 0 ? 0x11d : 0);
  }
  return static_cast<std::uint8_t>(sum);
}

std::string random_bytes(std::size_t bytes, std::mt19937_64& chance) {
  std::string made(bytes, '\0');
  for (auto& byte : made)
    byte = static_cast<char>(chance());
  return made;
}

/// A group's snapshots and what is held of them: parities[stripe][row].
struct group {
  group(const code& of, std::vector<std::string> all) : c(of), snapshots(std::move(all)) {
    for (std::uint32_t stripe = 0; stripe < c.members; ++stripe) {
      auto& rows = parities.emplace_back();
      for (std::uint32_t row = 0; row < c.parity; ++row)
        rows.push_back(sum_of(stripe, row));
    }
  }

  std::string sum_of(std::uint32_t stripe, std::uint32_t row) const {
    std::string sum(longest(), '\0');
    for (std::uint32_t m = 0; m < c.members; ++m)
      if (const auto given = piece(m, stripe); given)
        accumulate(sum.data(), given->data(), given->size(), coefficient(c, row, m));
    return sum;
  }

  std::uint64_t longest() const {
    std::uint64_t most = 0;
    for (const auto& snapshot : snapshots)
      most = std::max(most, piece_bytes(c, snapshot.size()));
    return most;
  }

  std::optional<std::string> piece(std::uint32_t member, std::uint32_t stripe) const {
    const auto index = piece_of(c, member, stripe);
    if (!index)
      return std::nullopt;
    const auto part = piece_in(c, snapshots[member].size(), *index);
    return snapshots[member].substr(part.from, part.bytes);
  }

  /// The snapshot of one of the lost from what the others have, as long as it was; nothing if one
  /// of its pieces cannot be had.
  std::optional<std::string> rebuild(std::uint32_t one, const std::set<std::uint32_t>& lost) const {
    std::string snapshot(snapshots[one].size(), '\0');
    for (std::uint32_t stripe = 0; stripe < c.members; ++stripe) {
      const auto index = piece_of(c, one, stripe);
      if (!index)
        continue;
      std::vector<bool> there(c.members), rows(c.parity);
      for (std::uint32_t m = 0; m < c.members; ++m)
        there[m] = lost.count(m) == 0;
      for (std::uint32_t row = 0; row < c.parity; ++row)
        rows[row] = lost.count(target(c, stripe, row)) == 0;
      const auto terms = rebuilt(c, stripe, one, there, rows);
      if (!terms)
        return std::nullopt;
      std::string sum(longest(), '\0');
      for (const auto& t : *terms) {
        REQUIRE((t.parity ? rows[t.which] : there[t.which]));
        const auto from = t.parity ? parities[stripe][t.which] : piece(t.which, stripe).value();
        accumulate(sum.data(), from.data(), from.size(), t.times);
      }
      const auto part = piece_in(c, snapshot.size(), *index);
      snapshot.replace(part.from, part.bytes, sum, 0, part.bytes);
    }
    return snapshot;
  }

  code c;
  std::vector<std::string> snapshots;
  std::vector<std::vector<std::string>> parities;
};

group random_group(const code& c, std::mt19937_64& chance) {
  static constexpr std::size_t sizes[] = {0, 1, 63, 64, 4097, 1000, 129};
  std::vector<std::string> snapshots;
  for (std::uint32_t m = 0; m < c.members; ++m)
    snapshots.push_back(random_bytes(sizes[chance() % std::size(sizes)], chance));
  return {c, std::move(snapshots)};
}

/// All sets of so many members.
std::vector<std::set<std::uint32_t>> choices(std::uint32_t members, std::uint32_t count) {
  std::vector<std::set<std::uint32_t>> found;
  for (std::uint32_t mask = 0; mask < 1u << members; ++mask) {
    std::set<std::uint32_t> chosen;
    for (std::uint32_t m = 0; m < members; ++m)
      if ((mask >> m & 1) != 0)
        chosen.insert(m);
    if (chosen.size() == count)
      found.push_back(std::move(chosen));
  }
  return found;
}

std::string why(const code& c) {
  const auto checked = check(c);
  return checked ? "" : checked.error().what;
}

} // namespace

TEST_CASE("which codes there can be") {
  CHECK(why({1, 1}) == "a group of 1: it has 2 to 16 members");
  CHECK(why({0, 0}) == "a group of 0: it has 2 to 16 members");
  CHECK(why({17, 1}) == "a group of 17: it has 2 to 16 members");
  CHECK(why({2, 0}) == "0 parities in a group of 2: there can be 1");
  CHECK(why({2, 2}) == "2 parities in a group of 2: there can be 1");
  CHECK(why({3, 3}) == "3 parities in a group of 3: there can be 1 or 2");
  CHECK(why({4, 4}) == "4 parities in a group of 4: there can be 1, 2 or 3");
  CHECK(why({5, 3}) == "3 parities in a group of 5: there can be 1, 2 or 4");
  CHECK(why({6, 5}) == "5 parities in a group of 6: there can be 1 or 2");
  CHECK(why({16, 0xffffffff}) == "4294967295 parities in a group of 16: there can be 1 or 2");
  // One and two in every group that has more members, and three of four, four of five.
  CHECK(valid_codes().size() == 15 + 14 + 2);
}

TEST_CASE("each member holds as many parities as there may be lost, and gives every piece once") {
  for (const auto& c : valid_codes()) {
    CAPTURE(c.members);
    CAPTURE(c.parity);
    std::vector<std::uint32_t> held(c.members);
    std::vector<std::multiset<std::uint32_t>> given(c.members);
    for (std::uint32_t stripe = 0; stripe < c.members; ++stripe) {
      std::set<std::uint32_t> targets;
      for (std::uint32_t row = 0; row < c.parity; ++row) {
        const auto by = target(c, stripe, row);
        targets.insert(by);
        ++held[by];
      }
      CHECK(targets.size() == c.parity);
      for (std::uint32_t m = 0; m < c.members; ++m) {
        const auto piece = piece_of(c, m, stripe);
        CHECK(piece.has_value() == (targets.count(m) == 0));
        if (piece)
          given[m].insert(*piece);
      }
    }
    std::vector<std::uint32_t> all(c.pieces());
    std::iota(all.begin(), all.end(), 0);
    for (std::uint32_t m = 0; m < c.members; ++m) {
      CHECK(held[m] == c.parity);
      CHECK(given[m] == std::multiset<std::uint32_t>(all.begin(), all.end()));
    }
  }
}

TEST_CASE("the pieces of an image are all of it, in order, and none is longer than it may be") {
  for (const auto& c : valid_codes())
    for (const std::uint64_t bytes : {0, 1, 2, 5, 14, 15, 63, 64, 4097}) {
      std::uint64_t next = 0;
      for (std::uint32_t piece = 0; piece < c.pieces(); ++piece) {
        const auto part = piece_in(c, bytes, piece);
        CHECK(part.from == next);
        CHECK(part.bytes <= piece_bytes(c, bytes));
        next += part.bytes;
      }
      CHECK(next == bytes);
    }
  CHECK(piece_bytes({16, 1}, ~std::uint64_t{0}) == 0x1111111111111111);
}

TEST_CASE("sums are those of the field, whatever the length, the alignment and the factor") {
  std::mt19937_64 chance(1);
  for (const std::size_t bytes : {0, 1, 31, 32, 63, 64, 65, 127, 128, 1000, 4097})
    for (const std::size_t shift : {0, 1, 7, 33})
      for (const unsigned times : {0, 1, 2, 3, 0x1d, 0x80, 0xff}) {
        const auto from = random_bytes(bytes + shift, chance);
        auto into = random_bytes(bytes + 2 * shift + 1, chance);
        auto expected = into;
        for (std::size_t i = 0; i < bytes; ++i)
          expected[2 * shift + i] =
              static_cast<char>(expected[2 * shift + i] ^
                                product(static_cast<unsigned char>(from[shift + i]), times));
        accumulate(into.data() + 2 * shift, from.data() + shift, bytes,
                   static_cast<std::uint8_t>(times));
        REQUIRE(into == expected);
      }
}

TEST_CASE("the first row is XOR, the second has powers of two, copies are the image") {
  for (const auto& c : valid_codes())
    for (std::uint32_t m = 0; m < c.members; ++m) {
      CHECK(coefficient(c, 0, m) == 1);
      std::uint8_t power = 1;
      for (std::uint32_t i = 0; i < m; ++i)
        power = product(power, 2);
      if (c.parity == 2 && c.members > 3)
        CHECK(coefficient(c, 1, m) == power);
      if (c.parity == c.members - 1)
        for (std::uint32_t row = 0; row < c.parity; ++row)
          CHECK(coefficient(c, row, m) == 1);
    }
  std::mt19937_64 chance(2);
  const group copies(
      {3, 2}, {random_bytes(100, chance), random_bytes(100, chance), random_bytes(100, chance)});
  for (std::uint32_t stripe = 0; stripe < 3; ++stripe)
    for (const auto& copy : copies.parities[stripe])
      CHECK(copy == copies.snapshots[(stripe + 2) % 3]);
  const group sums({3, 1}, {std::string(8, '\1'), std::string(8, '\2'), std::string(8, '\4')});
  CHECK(sums.parities[0][0] == std::string(4, '\6'));
  CHECK(sums.parities[1][0] == std::string(4, '\5'));
  CHECK(sums.parities[2][0] == std::string(4, '\3'));
}

TEST_CASE("any members, as many as there are parities, may be lost and come back to the byte") {
  std::mt19937_64 chance(3);
  for (const auto& c : valid_codes(8))
    for (std::uint32_t count = 1; count <= c.parity; ++count)
      for (const auto& lost : choices(c.members, count)) {
        const auto whole = random_group(c, chance);
        for (const auto one : lost) {
          CAPTURE(c.members);
          CAPTURE(c.parity);
          CAPTURE(one);
          const auto again = whole.rebuild(one, lost);
          REQUIRE(again);
          REQUIRE(*again == whole.snapshots[one]);
        }
      }
}

TEST_CASE("large groups bring back one and two as well") {
  std::mt19937_64 chance(4);
  for (const auto& c : valid_codes())
    for (int i = 0; i < 8; ++i) {
      const auto whole = random_group(c, chance);
      std::set<std::uint32_t> lost;
      while (lost.size() < c.parity)
        lost.insert(static_cast<std::uint32_t>(chance() % c.members));
      for (const auto one : lost) {
        const auto again = whole.rebuild(one, lost);
        REQUIRE(again);
        REQUIRE(*again == whole.snapshots[one]);
      }
    }
}

TEST_CASE("a piece can be had exactly if there are as many parities as pieces that are not there") {
  std::mt19937_64 chance(5);
  for (const auto& c : valid_codes(8))
    for (int i = 0; i < 200; ++i) {
      const auto stripe = static_cast<std::uint32_t>(chance() % c.members);
      const auto lost =
          target(c, stripe, c.parity + static_cast<std::uint32_t>(chance()) % c.pieces());
      std::vector<bool> snapshots(c.members), parities(c.parity);
      for (std::uint32_t m = 0; m < c.members; ++m)
        snapshots[m] = chance() % 3 != 0;
      for (std::uint32_t row = 0; row < c.parity; ++row)
        parities[row] = chance() % 3 != 0;
      std::ptrdiff_t missing = 1; // itself, whatever is said of its snapshot
      for (std::uint32_t m = 0; m < c.members; ++m)
        missing += m != lost && piece_of(c, m, stripe) && !snapshots[m] ? 1 : 0;
      const auto there = std::count(parities.begin(), parities.end(), true);
      const auto terms = rebuilt(c, stripe, lost, snapshots, parities);
      CHECK(terms.has_value() == (there >= missing));
      if (!terms)
        continue;
      const auto summed =
          std::count_if(terms->begin(), terms->end(), [](const summand& t) { return t.parity; });
      CHECK(summed <= missing);
      CHECK(std::none_of(terms->begin(), terms->end(),
                         [](const summand& t) { return t.times == 0; }));
    }
}

TEST_CASE("of one more than there are parities not one piece comes back") {
  // Where some of them hold parities, one piece more is missing than there are parities left.
  for (const auto& c : valid_codes(8))
    for (const auto& lost : choices(c.members, c.parity + 1))
      for (std::uint32_t stripe = 0; stripe < c.members; ++stripe) {
        std::vector<bool> snapshots(c.members), parities(c.parity);
        for (std::uint32_t m = 0; m < c.members; ++m)
          snapshots[m] = lost.count(m) == 0;
        for (std::uint32_t row = 0; row < c.parity; ++row)
          parities[row] = lost.count(target(c, stripe, row)) == 0;
        for (const auto one : lost)
          if (piece_of(c, one, stripe))
            CHECK_FALSE(rebuilt(c, stripe, one, snapshots, parities));
      }
}

TEST_CASE("with XOR alone one term is the parity, and all have the factor one") {
  const auto terms = rebuilt({5, 1}, 0, 3, {true, true, true, false, true}, {true});
  REQUIRE(terms);
  std::set<std::uint32_t> members;
  for (const auto& t : *terms) {
    CHECK(t.times == 1);
    if (!t.parity)
      members.insert(t.which);
  }
  CHECK(terms->size() == 4);
  CHECK(members == std::set<std::uint32_t>{1, 2, 4});
}

TEST_CASE("one that is lost is brought back by XOR as long as that is there") {
  const auto terms = rebuilt({4, 2}, 0, 3, {true, true, true, false}, {true, true});
  REQUIRE(terms);
  REQUIRE(terms->size() == 2);
  CHECK(terms->front().parity);
  CHECK(terms->front().which == 0);
  CHECK(terms->back().which == 2);
}
