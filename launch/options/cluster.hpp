#pragma once

#include "runtime/base/result.hpp"

#include <string>

/// What a master may do with the machines of Kubernetes that its job runs on.
namespace troupe::launch {

enum class faulty_machine { is_left, is_tainted, is_cordoned };

/// Where the API server is, and what it is shown.
struct kubernetes_account {
  /// The directory with the pod's token and the authority of the API server.
  std::string service_account = "/var/run/secrets/kubernetes.io/serviceaccount";
  /// Outside of the cluster: a file of kubectl's instead, and which of its contexts.
  std::string kubeconfig, context;
};

struct cluster_options {
  faulty_machine marks = faulty_machine::is_left;
  kubernetes_account account;
  /// The ElasticJob whose pods the master keeps; empty: none. And which scheduler places them.
  std::string elastic_job, gang;
};

/// What was typed.
struct cluster_arguments {
  std::string mark_faulty = "none";
  kubernetes_account account;
  std::string elastic_job, gang;
};

result<void> check_account(const kubernetes_account& a);
result<cluster_options> derive_cluster(const cluster_arguments& w);

} // namespace troupe::launch
