#include "launch/wiring/api_access.hpp"

#include "runtime/os/kube/kubeconfig.hpp"

namespace troupe::launch {

result<os::api_access> api_access_of(const kubernetes_account& account,
                                     const machine_facts& machine) {
  return account.kubeconfig.empty()
             ? os::access_in_cluster(machine.environment, account.service_account)
             : os::access_by_kubeconfig(account.kubeconfig, account.context);
}

} // namespace troupe::launch
