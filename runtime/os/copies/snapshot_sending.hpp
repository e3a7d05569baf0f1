#pragma once

#include "ckpt/copies/replication_host.hpp"
#include "ckpt/copies/sending_plan.hpp"
#include "messages/msg.hpp"
#include "runtime/os/copies/target_links.hpp"
#include "runtime/ports/bulk_links.hpp"
#include "runtime/ports/storage.hpp"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe::ckpt {

/// One snapshot on its way to its targets. Never waits: its owner calls `step` until that says how
/// it ended, and sleeps in between until something happens on links, or until `wake_at`.
class snapshot_sending {
 public:
  snapshot_sending(target_links& links, ports::bulk_links& bulk, messages::author& author,
                   const snapshot_to_copy& snapshot, ports::bytes_view memory, sending_plan plan,
                   instant until);

  /// Dials the targets; other links go.
  result<void> begin();
  void hear(const target_links::news& n);
  /// Does a little of what there is to do.
  void step(instant now);
  /// Nothing: there is something to do now.
  std::optional<instant> wake_at() const { return wake_at_; }
  /// Nothing: it goes on.
  const std::optional<result<void>>& ended() const { return ended_; }
  /// All its links go, so that its targets drop what is half there.
  void give_up(const error& why);

 private:
  const std::string& address(std::uint32_t member) const {
    return snapshot_.by.members[member].address;
  }
  void fail(std::uint32_t member, const error& why);
  void hear(std::uint32_t member, const messages::any_msg& m);
  void say_begin(std::uint32_t member);
  void say_part(const sending_plan::part& p);
  void say_end(std::uint32_t member);
  bool sum_some();

  target_links& links_;
  ports::bulk_links& bulk_; ///< whose rate is kept
  messages::author& author_;
  const snapshot_to_copy& snapshot_;
  const ports::bytes_view memory_;
  sending_plan plan_;
  const instant until_;
  std::set<std::uint32_t> dialled_, given_, awaited_; ///< without a link; told CopyBegin; not held
  std::set<std::uint32_t> ended_at_;                  ///< told CopyEnd
  std::size_t summed_ = 0;
  std::uint32_t crc32_ = 0;
  std::optional<instant> wake_at_;
  std::optional<result<void>> ended_;
};

} // namespace troupe::ckpt
