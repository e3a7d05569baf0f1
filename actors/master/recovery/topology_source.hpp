#pragma once

#include "runtime/base/result.hpp"
#include "topology/network_tree.hpp"

#include <functional>
#include <memory>
#include <string>

namespace troupe::actors {

/// What became of the file that tells of the network.
struct topology_answer {
  /// The error is one line without the name of the file.
  result<std::shared_ptr<const topology::network_tree>> tree;
  /// For people: "racks.json", and what it was taken for.
  std::string from, taken_for;
};

/// Where the planner asks for the network: a file, which may not be there yet, on a disk that may
/// not answer.
class topology_source {
 public:
  virtual ~topology_source() = default;

  /// Returns at once. `done` is called once, by a thread of the source's own, and not any more when
  /// the source is gone. Asked again by a planner that was restarted.
  virtual void read(std::function<void(const topology_answer&)> done) = 0;
};

} // namespace troupe::actors
