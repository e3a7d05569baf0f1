#pragma once

#include "runtime/base/result.hpp"

#include <cstdint>
#include <optional>
#include <vector>

/// How the snapshots of a group of nodes are kept at each other, so that some of these may be lost.
///
/// A group has `members` snapshots, one of each, and as many stripes. In stripe s the members s, s
/// + 1, … s + parity - 1 (modulo members) hold a parity each and give nothing; each of the others
/// gives a piece of its snapshot. So a snapshot is cut into `members - parity` pieces, and each
/// member holds `parity` of them for the others. A parity is the sum of the stripe's pieces, each
/// times a coefficient, in the field of 256 elements that RAID 6 and ISA-L use (polynomial 0x11d):
/// row r multiplies the piece of member m by (2^m)^r. So row 0 is XOR, both rows are Reed–Solomon,
/// and with one piece for each stripe (parity = members - 1, where every coefficient counts as 1) a
/// parity is a copy.
namespace troupe::ckpt {

struct code {
  static constexpr std::uint32_t members_max = 16, parity_max = 4;

  std::uint32_t members = 0; ///< 2 … members_max
  std::uint32_t parity = 0;  ///< so many may be lost: 1 or 2, or members - 1 up to parity_max

  std::uint32_t pieces() const { return members - parity; } ///< of a snapshot
};

/// `invalid`, and which numbers can be. All below have it as a precondition that a code passes.
result<void> check(const code& c);

/// Of each piece of a snapshot of so many bytes; what the last one lacks counts as zeros. So pieces
/// of a stripe may be of several lengths, and its parity has that of the longest.
std::uint64_t piece_bytes(const code& c, std::uint64_t snapshot_bytes);

/// Where a piece lies in a snapshot of so many bytes: what there is of it, which may be nothing.
struct part_of_snapshot {
  std::uint64_t from = 0, bytes = 0;
};
part_of_snapshot piece_in(const code& c, std::uint64_t snapshot_bytes, std::uint32_t piece);

/// The target of parity `row` of a stripe. Precondition: row < parity.
std::uint32_t target(const code& c, std::uint32_t stripe, std::uint32_t row);

/// Which piece of its snapshot `member` gives to a stripe; nothing if it holds a parity of it.
std::optional<std::uint32_t> piece_of(const code& c, std::uint32_t member, std::uint32_t stripe);

/// What parity `row` multiplies the member's piece by.
std::uint8_t coefficient(const code& c, std::uint32_t row, std::uint32_t member);

/// into ^= times * from. Of any length and alignment; the two do not overlap.
void accumulate(char* into, const char* from, std::uint64_t bytes, std::uint8_t times);

/// One term of the sum that a lost piece is.
struct summand {
  bool parity = false;
  std::uint32_t which = 0; ///< the row of the parity, or the member whose piece it is
  std::uint8_t times = 0;
};

/// The piece that `lost` gave to a stripe, as a sum of what there is: of each member whether its
/// snapshot is there, of each row whether the parity is. Each term counts as zeros beyond its end.
/// Nothing if that is too little: fewer parities than pieces that are not there, that of `lost`
/// among them. Precondition: `lost` gives a piece to that stripe.
std::optional<std::vector<summand>> rebuilt(const code& c, std::uint32_t stripe, std::uint32_t lost,
                                            const std::vector<bool>& snapshots,
                                            const std::vector<bool>& parities);

} // namespace troupe::ckpt
