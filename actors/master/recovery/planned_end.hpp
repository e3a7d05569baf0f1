#pragma once

#include "actors/limits.hpp"
#include "runtime/base/time.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace troupe::actors {

struct planned_end_options {
  /// Until the first worker has ended, or wants something saved.
  duration begin_within = limits::planned_end_begin_within;
  /// Until all workers have ended.
  duration within = limits::planned_end_within;
};

/// How long the workers of a generation that runs are waited for, once they were asked to save and
/// end.
class planned_end {
 public:
  planned_end(instant now, std::string reason, const planned_end_options& o)
      : reason_(std::move(reason)), until_(now + o.within),
        begin_until_(std::min(now + o.begin_within, until_)) {}

  void begun() { begun_ = true; }
  bool has_begun() const { return begun_; }
  instant until() const { return begun_ ? until_ : begin_until_; }
  const std::string& reason() const { return reason_; }

 private:
  std::string reason_; ///< of the plan, for people
  instant until_, begin_until_;
  bool begun_ = false;
};

} // namespace troupe::actors
