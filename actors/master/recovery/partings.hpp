#pragma once

#include "runtime/base/ids.hpp"
#include "runtime/base/time.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors {

/// Nodes that are leaving the job and save first: what only their memory has goes with them. The
/// next world waits for them, and for no longer than each may take. Pure.
class partings {
 public:
  void begin(const node_name& node, incarnation which, instant until, std::string reason) {
    nodes_[node] = {which, until, std::move(reason)};
  }
  /// The reason, if this life of the node is leaving; another life under the name is welcome.
  std::optional<std::string> reason_of(const node_name& node, incarnation which) const {
    const auto found = nodes_.find(node);
    return found != nodes_.end() && found->second.which == which
               ? std::optional(found->second.reason)
               : std::nullopt;
  }
  /// It has left, or another life has its name. False: it was not leaving.
  bool end(const node_name& node) { return nodes_.erase(node) > 0; }
  bool any() const { return !nodes_.empty(); }
  /// When the first of them is late.
  std::optional<instant> until() const {
    const auto first =
        std::min_element(nodes_.begin(), nodes_.end(), [](const auto& a, const auto& b) {
          return a.second.until < b.second.until;
        });
    return first == nodes_.end() ? std::nullopt : std::optional(first->second.until);
  }
  /// Those that are late, each once, with its reason.
  std::vector<std::pair<node_name, std::string>> take_late(instant now) {
    std::vector<std::pair<node_name, std::string>> late;
    for (auto at = nodes_.begin(); at != nodes_.end();)
      if (now >= at->second.until) {
        late.emplace_back(at->first, at->second.reason);
        at = nodes_.erase(at);
      } else {
        ++at;
      }
    return late;
  }

 private:
  struct parting {
    incarnation which;
    instant until;
    std::string reason;
  };
  std::map<node_name, parting> nodes_;
};

} // namespace troupe::actors
