#pragma once

#include "launch/shell/inquiry.hpp"
#include "runtime/base/result.hpp"
#include "runtime/ports/transport.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::launch {

/// Where a master is, and what proves this shell to it.
struct master_place {
  std::shared_ptr<ports::transport> by;
  ports::endpoint where;
};

struct masters {
  /// Each with its link.
  std::vector<std::unique_ptr<inquiry>> found;
  /// Why the others are none, a line each.
  std::vector<std::string> reasons;
};

/// Those among `possible` where a master welcomes this shell.
/// By whichever of the transports proves this shell to it.
masters masters_among(const std::vector<std::shared_ptr<ports::transport>>& transports,
                      const std::vector<ports::endpoint>& possible);

/// The only one; otherwise one line that says what there is and what to give.
result<master_place> find_master(const std::vector<std::shared_ptr<ports::transport>>& transports,
                                 const std::vector<ports::endpoint>& possible);

} // namespace troupe::launch
