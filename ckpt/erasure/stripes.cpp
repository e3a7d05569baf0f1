#include "ckpt/erasure/stripes.hpp"

#include <fmt/format.h>
#include <isa-l/erasure_code.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace troupe::ckpt {

namespace {

/// What ISA-L multiplies with: products of the low and of the high half of a byte.
using products = std::array<unsigned char, 32>;

/// Its sums of products want at least so much, and count with int.
constexpr std::uint64_t least_at_once = 64, most_at_once = 1u << 30;

constexpr std::size_t rows_max = 4;
using matrix = std::array<unsigned char, rows_max * rows_max>;

/// Blocks of a size known beforehand are what a compiler makes wide instructions of.
void add(char* into, const char* from, std::uint64_t bytes) {
  using block = std::array<std::uint64_t, 8>;
  std::uint64_t at = 0;
  for (; at + sizeof(block) <= bytes; at += sizeof(block)) {
    block sum, more;
    std::memcpy(&sum, into + at, sizeof sum);
    std::memcpy(&more, from + at, sizeof more);
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] ^= more[i];
    std::memcpy(into + at, &sum, sizeof sum);
  }
  for (; at < bytes; ++at)
    into[at] = static_cast<char>(into[at] ^ from[at]);
}

void add_product(char* into, const char* from, std::uint64_t bytes, const products& of) {
  for (std::uint64_t at = 0; at < bytes; ++at) {
    const auto byte = static_cast<unsigned char>(from[at]);
    const auto product = of[byte & 15] ^ of[16 + (byte >> 4)];
    into[at] = static_cast<char>(into[at] ^ product);
  }
}

/// Where a member stands in a stripe: those that hold its parities come first.
std::uint32_t place_in(const code& c, std::uint32_t member, std::uint32_t stripe) {
  return (member + c.members - stripe) % c.members;
}

std::string parities_that_can_be(std::uint32_t members) {
  switch (members) {
  case 2:
    return "1";
  case 4:
    return "1, 2 or 3";
  case 5:
    return "1, 2 or 4";
  default:
    return "1 or 2";
  }
}

/// The first `count` rows whose parity is there; fewer if there are not so many.
std::vector<std::uint32_t> first_rows(const std::vector<bool>& parities, std::size_t count) {
  std::vector<std::uint32_t> rows;
  for (std::uint32_t row = 0; row < parities.size() && rows.size() < count; ++row)
    if (parities[row])
      rows.push_back(row);
  return rows;
}

} // namespace

result<void> check(const code& c) {
  if (c.members < 2 || c.members > code::members_max)
    return failure(errc::invalid, fmt::format("a group of {}: it has 2 to {} members", c.members,
                                              code::members_max));
  const auto copies = c.parity == c.members - 1 && c.parity <= code::parity_max;
  const auto sums = (c.parity == 1 || c.parity == 2) && c.parity < c.members;
  if (!copies && !sums)
    return failure(errc::invalid,
                   fmt::format("{} parities in a group of {}: there can be {}", c.parity, c.members,
                               parities_that_can_be(c.members)));
  return {};
}

std::uint64_t piece_bytes(const code& c, std::uint64_t snapshot_bytes) {
  return snapshot_bytes / c.pieces() + (snapshot_bytes % c.pieces() != 0 ? 1 : 0);
}

part_of_snapshot piece_in(const code& c, std::uint64_t snapshot_bytes, std::uint32_t piece) {
  const auto whole = piece_bytes(c, snapshot_bytes);
  const auto from = std::min(whole * piece, snapshot_bytes);
  return {from, std::min(whole, snapshot_bytes - from)};
}

std::uint32_t target(const code& c, std::uint32_t stripe, std::uint32_t row) {
  return (stripe + row) % c.members;
}

std::optional<std::uint32_t> piece_of(const code& c, std::uint32_t member, std::uint32_t stripe) {
  const auto place = place_in(c, member, stripe);
  return place < c.parity ? std::nullopt : std::optional(place - c.parity);
}

std::uint8_t coefficient(const code& c, std::uint32_t row, std::uint32_t member) {
  std::uint8_t power = 1;
  if (c.parity != c.members - 1)
    for (std::uint32_t i = 0; i < row * member; ++i)
      power = gf_mul(power, 2);
  return power;
}

void accumulate(char* into, const char* from, std::uint64_t bytes, std::uint8_t times) {
  if (times == 0)
    return;
  if (times == 1)
    return add(into, from, bytes);
  products of;
  gf_vect_mul_init(times, of.data());
  std::uint64_t at = 0;
  while (bytes - at >= least_at_once) {
    const auto now = std::min(most_at_once, bytes - at);
    // It reads only from the source, to its author that is not constant.
    gf_vect_mad(static_cast<int>(now), 1, 0, of.data(),
                reinterpret_cast<unsigned char*>(const_cast<char*>(from + at)),
                reinterpret_cast<unsigned char*>(into + at));
    at += now;
  }
  add_product(into + at, from + at, bytes - at, of);
}

std::optional<std::vector<summand>> rebuilt(const code& c, std::uint32_t stripe, std::uint32_t lost,
                                            const std::vector<bool>& snapshots,
                                            const std::vector<bool>& parities) {
  std::vector<std::uint32_t> missing, there;
  for (std::uint32_t member = 0; member < c.members; ++member)
    if (piece_of(c, member, stripe))
      (snapshots[member] && member != lost ? there : missing).push_back(member);
  const auto rows = first_rows(parities, missing.size());
  if (rows.size() < missing.size())
    return std::nullopt;
  // The parities less what is there of them are the missing pieces times this matrix.
  const auto n = missing.size();
  matrix sums{}, inverse{};
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < n; ++k)
      sums[i * n + k] = coefficient(c, rows[i], missing[k]);
  if (gf_invert_matrix(sums.data(), inverse.data(), static_cast<int>(n)) != 0)
    return std::nullopt;
  const auto at = std::find(missing.begin(), missing.end(), lost) - missing.begin();
  const auto* const of_row = inverse.data() + static_cast<std::size_t>(at) * n;
  std::vector<summand> sum;
  for (std::size_t i = 0; i < n; ++i)
    if (of_row[i] != 0)
      sum.push_back({true, rows[i], of_row[i]});
  for (const auto member : there) {
    std::uint8_t times = 0;
    for (std::size_t i = 0; i < n; ++i)
      times ^= gf_mul(of_row[i], coefficient(c, rows[i], member));
    if (times != 0)
      sum.push_back({false, member, times});
  }
  return sum;
}

} // namespace troupe::ckpt
