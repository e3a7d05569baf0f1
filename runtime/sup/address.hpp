#pragma once

#include "runtime/sup/protocol.hpp"

#include <caf/typed_actor.hpp>

#include <memory>
#include <mutex>
#include <utility>

namespace troupe::sup {

/// A typed place in the tree. The supervisor fills it with the current incarnation of a child and
/// empties it when that incarnation is down, so an address survives restarts while a handle does
/// not. Copies are the same place. Safe from any thread.
///
/// Between a child's end and its supervisor's notice an address still names the dead incarnation: a
/// message to it is lost, a request fails. That is what a sender must be ready for anyway.
template<class H>
class address {
 public:
  address() : place_(std::make_shared<place>()) {}

  /// For the supervisor, and for tests that put a stand-in at this place.
  void bind(H h) const {
    // The previous handle is released outside the lock: it may be the last one, and then a
    // destructor runs.
    const std::lock_guard lock(place_->mutex);
    std::swap(place_->current, h);
  }

  void clear() const { bind(H{}); }

  /// The current incarnation; empty while there is none. Not to be kept beyond the use at hand.
  H current() const {
    const std::lock_guard lock(place_->mutex);
    return place_->current;
  }

  explicit operator bool() const { return static_cast<bool>(current()); }

 private:
  struct place {
    std::mutex mutex;
    H current;
  };
  std::shared_ptr<place> place_;
};

} // namespace troupe::sup
