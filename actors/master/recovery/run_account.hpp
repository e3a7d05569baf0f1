#pragma once

#include "runtime/base/time.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace troupe::actors {

/// What interruptions have cost the job since this master began: for the end of a run,
/// which is read first.
class run_account {
 public:
  /// The workers are started once more. `cause` in a word or two, e.g. "node lost".
  void restarted(const std::string& cause) { ++restarts_[cause]; }
  /// From a failure until all workers ran again.
  void stood_still(duration d) { stood_still_ += d; }

  std::uint32_t restarts() const;
  duration stood_still() const { return stood_still_; }
  /// "; 3 restarts (killed: 2, node lost: 1), 81.2 ms in all without running workers"; empty
  /// without any.
  std::string in_words() const;

 private:
  std::map<std::string, std::uint32_t> restarts_;
  duration stood_still_{};
};

} // namespace troupe::actors
