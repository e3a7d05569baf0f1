#pragma once

#include "ckpt/copies/replication_host.hpp"
#include "ckpt/erasure/stripes.hpp"
#include "runtime/base/result.hpp"
#include "runtime/ports/transport.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::ckpt {

/// The inverse of ports::to_string. `invalid` for what cannot be dialled.
result<ports::endpoint> target_address(const std::string& text);

/// What of a snapshot goes to whom, in which order, and how far that is. Pure.
class sending_plan {
 public:
  /// `content` of the snapshot goes to a member, for a stripe.
  struct part {
    std::uint32_t member = 0, stripe = 0;
    std::uint64_t offset = 0; ///< within the piece
    std::uint64_t from = 0;   ///< within the snapshot
    std::uint64_t bytes = 0;
  };

  /// `invalid` if there can be no such group, or not for such a snapshot.
  static result<sending_plan> make(const copy_group& by, std::uint64_t snapshot_bytes);

  /// Members that hold something of this snapshot, in order.
  std::vector<std::uint32_t> targets() const;

  /// What is to be sent next: targets take turns, and have at most limits::copy_window bytes on the
  /// way. Nothing: all is sent, or a target has to take some first.
  std::optional<part> next() const;
  void sent(const part& p);
  /// False: the member has taken more than was sent.
  bool taken(std::uint32_t member, std::uint64_t bytes);
  bool all_sent(std::uint32_t member) const;

 private:
  struct piece {
    std::uint32_t stripe = 0;
    std::uint64_t from = 0, bytes = 0;
  };
  struct holding {
    std::vector<piece> pieces;
    std::size_t at = 0;       ///< which of them
    std::uint64_t offset = 0; ///< in it
    std::uint64_t on_the_way = 0;
  };

  std::optional<part> next_for(std::uint32_t member) const;

  std::vector<holding> members_; ///< by member; those without pieces hold nothing
  std::size_t turn_ = 0;
};

} // namespace troupe::ckpt
