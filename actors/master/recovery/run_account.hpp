#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace troupe::actors {

/// Restarts since this master began, by cause: for the end of a run, which is read first. Their
/// time is accounted for in one place, metrics/time_account.hpp.
class run_account {
 public:
  /// The workers are started once more. `cause` in a word or two, e.g. "node lost".
  void restarted(const std::string& cause) { ++restarts_[cause]; }

  std::uint32_t restarts() const;
  /// "; 3 restarts (killed: 2, node lost: 1)"; empty without any.
  std::string in_words() const;

 private:
  std::map<std::string, std::uint32_t> restarts_;
};

} // namespace troupe::actors
