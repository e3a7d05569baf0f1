#pragma once

#include "runtime/base/result.hpp"
#include "runtime/os/kube/api_access.hpp"

#include <string>

namespace troupe::os {

/// As people have it, outside of the cluster: what a file of kubectl's says. `context`: empty, its
/// current one. Paths in it are relative to its folder.
///
/// A server must be called by https and prove its name. Credentials are a token, a file with one,
/// or a certificate with its key; a program that would have to be run for them (`exec`) is not run.
/// Errors: one line with the file, and what of it is missing or not accepted.
/// https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/
result<api_access> access_by_kubeconfig(const std::string& file, const std::string& context);

} // namespace troupe::os
