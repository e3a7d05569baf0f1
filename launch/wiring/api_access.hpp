#pragma once

#include "launch/options/options.hpp"
#include "runtime/os/kube/api_access.hpp"

namespace troupe::launch {

/// By the kubeconfig that the user named, or else as the pod has it.
result<os::api_access> api_access_of(const kubernetes_account& account,
                                     const machine_facts& machine);

} // namespace troupe::launch
