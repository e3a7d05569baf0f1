#pragma once

#include "runtime/base/time.hpp"

#include <optional>

namespace troupe {

/// When to tell a person that something is still awaited: after 10 s, then at 30 s, then every
/// minute, so that a silent wait is never taken for a hang and a long one does not fill the screen.
class reminder {
 public:
  /// Waiting begins (again) now.
  void begin(instant now);
  void end() { since_.reset(); }

  /// True once for each time that has come.
  bool due(instant now);

  /// When it is due next; nothing while nothing is awaited.
  std::optional<instant> next() const;
  duration waited(instant now) const { return since_ ? now - *since_ : duration{}; }

 private:
  std::optional<instant> since_;
  duration next_after_{};
};

} // namespace troupe
