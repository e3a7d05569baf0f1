#pragma once

#include "runtime/base/result.hpp"
#include "runtime/ports/transport.hpp"

#include <map>
#include <string>

namespace troupe::os {

/// Where the API server is, and what to show it.
struct api_access {
  ports::endpoint server;
  std::string path;       ///< before that of each call; empty, or as "/k8s/clusters/c-1"
  std::string tls_name;   ///< which the server must prove; empty: its host
  std::string authority;  ///< PEM: what its certificate is signed by; empty: as the system trusts
  std::string token_file; ///< read anew for each call: it is replaced before it ends
  std::string token;      ///< without a file
  std::string certificate, key; ///< PEM: what this side shows; empty: nothing
  std::string name_space;       ///< of this pod, or of the context
  std::string source;           ///< for people: what says all this
};

/// Where a service account is mounted in each of its pods.
inline constexpr auto service_account_directory = "/var/run/secrets/kubernetes.io/serviceaccount";

/// As a pod has it: KUBERNETES_SERVICE_HOST and _PORT, and the files of its service account.
/// `unavailable`, with one line that says what is missing.
/// https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/
result<api_access> access_in_cluster(const std::map<std::string, std::string>& environment,
                                     const std::string& directory);

} // namespace troupe::os
