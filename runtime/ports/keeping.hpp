#pragma once

#include "messages/msg.hpp"

namespace troupe::ports {

/// What a successor of this node supervisor must know, each at a place of its own.
enum class kept_as : std::uint8_t {
  underway, ///< Underway, the agent's
  identity, ///< Identity, the uplink's
};

/// Outlives the supervisor: its successor finds what was last kept. Thread-safe; nothing blocks.
class keeping {
 public:
  virtual ~keeping() = default;

  /// In the order of the calls, and before whatever the process host is asked for later.
  virtual void keep(kept_as place, const messages::any_msg& what) = 0;

  /// What the predecessor left; empty if there was none, or it left nothing.
  virtual messages::any_msg kept(kept_as place) = 0;

  /// Whether there was a predecessor.
  virtual bool is_successor() = 0;
};

/// For a supervisor that has no successor.
class keeps_nothing final : public keeping {
 public:
  void keep(kept_as, const messages::any_msg&) override {}
  messages::any_msg kept(kept_as) override { return {}; }
  bool is_successor() override { return false; }
};

} // namespace troupe::ports
