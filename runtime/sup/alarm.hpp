#pragma once

#include "runtime/base/time.hpp"
#include "runtime/sup/shell.hpp"

#include <cstdint>
#include <optional>

namespace troupe::sup {

/// An actor's message to itself: its alarm is due.
struct wake {
  std::uint64_t number = 0;
};

/// Keeps one timer armed for the time at which a core next has something to do. After every event:
/// `arm(self, core.next_wakeup())`. On `wake`: tick the core only if `due(w)`. It may ring early
/// (the core's plans changed); cores bear that.
class alarm {
 public:
  template<class Self>
  void arm(Self* self, std::optional<instant> at) {
    if (!at || (armed_ && *armed_ <= *at))
      return;
    armed_ = at;
    const auto t = now(self);
    later(self, *at > t ? *at - t : duration::zero(), wake{++number_});
  }

  bool due(const wake& w) {
    if (w.number != number_)
      return false;
    armed_.reset();
    return true;
  }

 private:
  std::optional<instant> armed_;
  std::uint64_t number_ = 0;
};

} // namespace troupe::sup

TROUPE_LOCAL_MESSAGE(troupe::sup::wake)
