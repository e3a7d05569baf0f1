#pragma once

#include "ckpt/copies/replication_host.hpp"
#include "ckpt/copies/sending_plan.hpp"
#include "tests/sim/copy_link.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace troupe::sim {

/// The twins of runtime/os/copies/replication_source and snapshot_sending: gives the snapshots of a
/// local rank to their targets, one after the other, until its node supervisor ends.
class copy_source : public std::enable_shared_from_this<copy_source> {
 public:
  /// Its source's ear is given; null: no node is there.
  using dialling =
      std::function<std::shared_ptr<copy_link>(const std::string& address, copy_link::ear)>;

  copy_source(host_ptr launcher, dialling dial);

  /// Takes about so long, if nothing is waited for. `done` is called in any case, in the launcher's
  /// context.
  void give(const ckpt::snapshot_to_copy& snapshot, std::string content, duration takes,
            std::function<void(result<void>)> done);

 private:
  struct sending {
    std::uint64_t number = 0;
    ckpt::snapshot_to_copy snapshot;
    std::string content;
    duration takes{};
    std::function<void(result<void>)> done;
    std::optional<ckpt::sending_plan> plan;
    duration pause{};                    ///< before each part, and before the end
    std::set<std::uint32_t> awaited;     ///< have not said that they hold it
    std::set<std::uint32_t> told_of_end; ///< CopyEnd
    bool begun = false;
  };
  struct outgoing {
    std::shared_ptr<copy_link> link;
    bool connected = false;
  };

  void next();
  void dial_targets();
  void dial(const std::string& address);
  void connected(const std::string& address, const copy_link* link);
  void heard(const std::string& address, const copy_link* link, const messages::any_msg& m);
  void lost(const std::string& address, const copy_link* link, const std::string& why);
  /// False: that link was let go of.
  bool is_known(const std::string& address, const copy_link* link) const;
  std::optional<std::uint32_t> member_at(const std::string& address) const;
  void hear(std::uint32_t member, const messages::any_msg& m);
  void begin_when_all_are_there();
  void later(duration after, void (copy_source::*what)());
  void go_on();
  void say_begin(std::uint32_t member);
  void say_part(const ckpt::sending_plan::part& p);
  void fail(std::uint32_t member, const error& why);
  void end(result<void> how);
  const std::string& address_of(std::uint32_t member) const {
    return now_->snapshot.by.members[member].address;
  }

  const host_ptr launcher_;
  const dialling dial_;
  messages::author author_;
  std::deque<sending> waiting_;
  std::optional<sending> now_;
  std::map<std::string, outgoing> links_; ///< by address
  std::uint64_t last_ = 0;
};

} // namespace troupe::sim
