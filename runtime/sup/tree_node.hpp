#pragma once

#include "runtime/sup/spec.hpp"

#include <optional>

namespace troupe::sup::detail {

/// What a `tree` is made of; for the supervision library only.
struct node {
  enum class kind { worker, fixed, dynamic };

  std::string id;
  kind is = kind::worker;
  restart when = restart::permanent;
  /// Fills and empties the node's address.
  std::function<void(const caf::actor&)> bind;
  std::function<void()> forget;

  // Of a worker.
  stop_within limit{};
  starter start;

  // Of a supervisor.
  strategy how = strategy::one_for_one;
  budget restarts{};
  std::vector<tree> children;
  /// Dynamic only.
  std::function<void(const child_end&)> on_end;
};

/// "worker", "one_for_one", …, "dynamic".
const char* kind_name(const node& n);

/// 0 for a worker. A dynamic supervisor counts as having a supervisor of workers below it.
unsigned height(const node& n);

/// As `validate`, for a child that a dynamic supervisor is asked to start.
result<void> validate_dynamic_child(const tree& t);

} // namespace troupe::sup::detail
