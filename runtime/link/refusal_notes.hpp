#pragma once

#include "runtime/base/time.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::link {

/// What is told of refused connections. A few are told one by one, since that helps to find a wrong
/// token. A flood of them must not fill the log's disk: in each period only the first
/// `limits::refusals_told` are, and the others are counted.
class refusal_notes {
 public:
  /// Whether this one is told; else it is counted.
  bool refused(instant now, const std::string& in_words);

  /// At the end of a period in which some were counted: what to tell of them.
  std::optional<std::string> tick(instant now);
  std::optional<instant> next_wakeup() const;

 private:
  std::optional<instant> ends_;
  std::uint64_t told_ = 0;
  std::uint64_t counted_ = 0;
  std::string last_;
};

} // namespace troupe::link
