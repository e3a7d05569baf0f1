#pragma once

#include "runtime/base/result.hpp"

#include <string>

/// What a master may do with the machines of Kubernetes that its job runs on.
namespace troupe::launch {

enum class faulty_machine { is_left, is_tainted, is_cordoned };

struct cluster_options {
  faulty_machine marks = faulty_machine::is_left;
  /// The directory with the pod's token and the authority of the API server.
  std::string service_account;
  /// The ElasticJob whose pods the master keeps; empty: none. And which scheduler places them.
  std::string elastic_job, gang;
};

/// What was typed.
struct cluster_arguments {
  std::string mark_faulty = "none";
  std::string service_account = "/var/run/secrets/kubernetes.io/serviceaccount";
  std::string elastic_job, gang;
};

cluster_options derive_cluster(const cluster_arguments& w);

} // namespace troupe::launch
