#include "kube/avoided_machines.hpp"

#include "kube/limits.hpp"

#include <algorithm>

namespace troupe::kube {

void avoided_machines::add(const std::string& machine, std::optional<instant> until) {
  if (machine.empty())
    return;
  const auto known = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const entry& e) { return e.first == machine; });
  if (known != entries_.end()) {
    if (!known->second)
      return;
    entries_.erase(known);
  }
  entries_.emplace_back(machine, until);
  if (entries_.size() > limits::machines_avoided_max)
    entries_.erase(entries_.begin());
}

avoided_machines::list avoided_machines::at(instant now) const {
  list all;
  for (const auto& [machine, until] : entries_)
    if (!until || now < *until) {
      all.machines.push_back(machine);
      all.is_for_a_while |= until.has_value();
    }
  return all;
}

} // namespace troupe::kube
