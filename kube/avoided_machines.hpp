#pragma once

#include "runtime/base/time.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::kube {

/// Machines to which no new pod of the job is to go.
///
/// The machine of a lost node is avoided for a while: the cluster takes it for good until it has
/// noticed by itself, and a pod that is placed there does not begin. The machine of broken hardware
/// is avoided for good, whether or not the job may mark it.
class avoided_machines {
 public:
  struct list {
    std::vector<std::string> machines;
    bool is_for_a_while = false; ///< of at least one of them
  };

  /// Nothing: for good. Of too many the oldest is forgotten.
  void add(const std::string& machine, std::optional<instant> until);
  list at(instant now) const;
  list for_good() const { return at(instant::max()); }

 private:
  using entry = std::pair<std::string, std::optional<instant>>;
  std::vector<entry> entries_; ///< the newest last; bounded by limits::machines_avoided_max
};

} // namespace troupe::kube
