#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/time.hpp"

#include <functional>
#include <string>

/// What a node can find out about itself before it trains.
namespace troupe::probe {

/// Probes this node's devices, by themselves and with those of other nodes.
///
/// A driver that is broken takes the process along that asks it, or never answers. So whatever
/// touches a device runs in a process of its own, which can be killed; the node supervisor only
/// reads what that has found. Nothing blocks; `done` comes from another thread.
class probe_host {
 public:
  virtual ~probe_host() = default;

  using probed = std::function<void(const messages::msg<messages::NodeProbed>&)>;
  /// `done` is called once, a little after the time in `wanted` at the latest: a process that has
  /// ended without a report, or was killed, is a failure with its reason. The report has the
  /// numbers of `wanted` and this node's name. A probe that is under way is ended first, and its
  /// `done` is told so.
  virtual void probe_node(const messages::msg<messages::NodeProbeWanted>& wanted, probed done) = 0;

  using key_made = std::function<void(const std::string& key)>;
  using group_probed = std::function<void(const messages::msg<messages::GroupProbed>&)>;
  /// As above. `made` is called before `done`, at most once, and not at all if `wanted` has a key.
  virtual void probe_group(const messages::msg<messages::DevicesProbeWanted>& wanted, key_made made,
                           group_probed done) = 0;
  /// Nothing waits for the probe that is under way: it is ended, and its `done` is told so.
  virtual void end_probe() = 0;
};

/// Of a node whose devices nothing can look at: it never answers.
class no_probe_host final : public probe_host {
 public:
  void probe_node(const messages::msg<messages::NodeProbeWanted>&, probed) override {}
  void probe_group(const messages::msg<messages::DevicesProbeWanted>&, key_made,
                   group_probed) override {}
  void end_probe() override {}
};

} // namespace troupe::probe
