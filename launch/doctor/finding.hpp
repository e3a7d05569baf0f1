#pragma once

#include <optional>
#include <string>
#include <vector>

namespace troupe::launch::doctor {

enum class grade {
  ok,      ///< nothing to do
  note,    ///< something is not there, and the job runs as well without
  warning, ///< the job runs; what stands under `costs` may happen to it
  error,   ///< the job does not start, or ends at once
};

const char* to_string(grade g);

/// What was found out about one thing on this machine, and what follows.
struct finding {
  std::string subject;
  grade how = grade::ok;
  std::string found;
  /// What the job loses by it; empty if nothing.
  std::string costs;
  /// What the user can do; empty if nothing.
  std::string remedy;

  friend bool operator==(const finding& a, const finding& b) {
    return a.subject == b.subject && a.how == b.how && a.found == b.found && a.costs == b.costs &&
           a.remedy == b.remedy;
  }
};

using findings = std::vector<finding>;

} // namespace troupe::launch::doctor
