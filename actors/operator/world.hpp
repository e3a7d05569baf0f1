#pragma once

#include "kube/api_server.hpp"
#include "kube/job_objects.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace troupe::actors {

struct operator_options {
  kube::operator_policy policy;
  std::string name_space;                    ///< whose jobs; empty: all
  std::string lease_name_space, lease, self; ///< which of several operators leads
  std::uint64_t seed = 0;
};

/// What the operator's tree needs of the world. Functions are called from actors' threads.
struct operator_world {
  std::shared_ptr<kube::api_server> api;
  /// The time of day, RFC 3339 in UTC: with microseconds as leases have it.
  std::function<std::string()> utc;
  /// A new secret for a job.
  std::function<std::string()> token;
  /// The operator leads no longer.
  std::function<void()> on_over;
};

} // namespace troupe::actors
