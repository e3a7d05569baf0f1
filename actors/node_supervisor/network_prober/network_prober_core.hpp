#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "probe/ring_core.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::actors {

/// Probes what the master asks for: this node by itself, and what is between it and others.
///
/// Members of a group are asked at different moments, so a link may be there before the request
/// that it belongs to: it waits a little. Each is judged by its first frame and by the node that
/// has proven to be at its other end. One group at a time: a newer request ends an older one.
class network_prober_core {
 public:
  using link_id = std::uint64_t;

  struct probe_node {
    messages::msg<messages::NodeProbeWanted> wanted;
  };
  /// This node's devices, with those of the group. Answered with devices_probed(), and before that
  /// with key_made() where no key is given, under this number.
  struct probe_devices {
    std::uint64_t number = 0;
    messages::msg<messages::DevicesProbeWanted> wanted;
  };
  /// The probe that is under way is not waited for.
  struct end_probe {};
  /// Answered with connected() or not_connected(), unless the link is closed before.
  struct dial {
    link_id link = 0;
    std::string host;
    std::uint16_t port = 0;
  };
  struct say {
    link_id link = 0;
    messages::any_msg message;
  };
  struct close {
    link_id link = 0;
    std::string reason;
  };
  /// For the master; lost if there is no link.
  struct report {
    messages::any_msg message;
  };
  using effect = std::variant<probe_node, probe_devices, end_probe, dial, say, close, report>;
  using effects = std::vector<effect>;

  /// A member without an address is at `master_host`.
  network_prober_core(node_name node, messages::author author, probe::ring_core::pay pay,
                      std::string master_host);

  // From the master.
  effects node_probe_wanted(instant now, const messages::msg<messages::NodeProbeWanted>& m);
  effects group_probe_wanted(instant now, const messages::msg<messages::GroupProbeWanted>& m);
  /// From the host.
  effects node_probed(instant now, const messages::msg<messages::NodeProbed>& m);
  effects key_made(instant now, std::uint64_t number, const std::string& key);
  effects devices_probed(instant now, std::uint64_t number,
                         const messages::msg<messages::GroupProbed>& m);

  // Links. Numbers of those that come in are the caller's, from `first_own_link` down.
  static constexpr link_id first_own_link = link_id{1} << 63;
  effects arrived(instant now, link_id link, const node_name& from);
  effects connected(instant now, link_id link);
  effects not_connected(instant now, link_id link, const std::string& why, bool final);
  effects said(instant now, link_id link, const messages::any_msg& m);
  effects gone(instant now, link_id link, const std::string& why);

  effects tick(instant now);
  std::optional<instant> next_wakeup() const;
  std::string in_words() const;

 private:
  /// A link that came in, and does not belong to the ring yet.
  struct waiting_link {
    node_name from;
    instant until;
    std::vector<messages::any_msg> said; ///< ProbeBegin first
  };
  /// The group that is probed.
  struct group {
    probe::ring_core ring;
    std::uint64_t check = 0;
    std::uint32_t round = 0;
    std::string host; ///< of the next member
    std::uint16_t port = 0;
    link_id next = 0, previous = 0; ///< 0: there is none
    std::optional<messages::msg<messages::ProbeBegin>> begin;
    std::uint64_t devices = 0; ///< the number under which its devices are probed
  };

  void perform(effects& out, const probe::ring_core::effects& wanted);
  void adopt_waiting(effects& out, instant now);
  void hear(effects& out, instant now, link_id link, const messages::any_msg& m);
  void let_go(effects& out, const std::string& why);

  const node_name node_;
  messages::author author_;
  const probe::ring_core::pay pay_;
  const std::string master_host_;
  std::optional<group> group_;
  link_id last_own_ = first_own_link;
  std::map<link_id, waiting_link> waiting_;
  bool probing_node_ = false;
  std::uint64_t last_devices_ = 0;
};

} // namespace troupe::actors
