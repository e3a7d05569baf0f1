#pragma once

#include "messages/msg.hpp"

#include <cstdint>

namespace troupe::ports {

/// One numbered place for what a successor of this supervisor must know, and the kind of message
/// that is in it. The component that fills a slot has the constant for it.
template<class T>
struct kept_slot {
  std::uint8_t number;
};

/// Outlives the supervisor: its successor finds what was last kept. Thread-safe; nothing blocks.
class keeping {
 public:
  virtual ~keeping() = default;

  /// In the order of the calls, and before whatever the process host is asked for later.
  template<class T>
  void keep(kept_slot<T> slot, const messages::msg<T>& what) {
    keep_in(slot.number, what.any());
  }

  /// What the predecessor left; empty if there was none, or it left nothing.
  template<class T>
  messages::msg<T> kept(kept_slot<T> slot) {
    const auto found = kept_in(slot.number);
    return found.template is<T>() ? found.template as<T>() : messages::msg<T>{};
  }

  /// Whether there was a predecessor.
  virtual bool is_successor() = 0;

 protected:
  virtual void keep_in(std::uint8_t slot, const messages::any_msg& what) = 0;
  virtual messages::any_msg kept_in(std::uint8_t slot) = 0;
};

/// For a supervisor that has no successor.
class keeps_nothing final : public keeping {
 public:
  bool is_successor() override { return false; }

 protected:
  void keep_in(std::uint8_t, const messages::any_msg&) override {}
  messages::any_msg kept_in(std::uint8_t) override { return {}; }
};

} // namespace troupe::ports
