#include "launch/options/cluster.hpp"

#include "launch/options/arguments.hpp"

#include <utility>

namespace troupe::launch {

void add_account(option_group& to, kubernetes_account& a) {
  to.options.push_back(
      {scope::master,
       {"--service-account"},
       "DIR",
       "Where the pod has its service account (/var/run/secrets/kubernetes.io/serviceaccount)",
       into(a.service_account)});
  to.options.push_back({scope::master,
                        {"--kubeconfig"},
                        "FILE",
                        "Outside of the cluster: the API server and the user that a file of "
                        "kubectl's names, instead",
                        into(a.kubeconfig)});
  to.options.push_back({scope::master,
                        {"--kube-context"},
                        "NAME",
                        "The context of that file (its current one)",
                        into(a.context)});
}

result<void> check_account(const kubernetes_account& a) {
  if (!a.context.empty() && a.kubeconfig.empty())
    return failure(errc::invalid, "--kube-context needs --kubeconfig FILE, whose context it is");
  return {};
}

option_group cluster_group(cluster_arguments& w) {
  option_group group{
      "Kubernetes",
      {among({"none", "taint", "cordon"},
             {scope::master,
              {"--mark-faulty"},
              "HOW",
              "What is done with a machine whose hardware is broken: taint (troupe/faulty="
              "JOB:NoSchedule), cordon, or none (default); needs a role that may list pods, and "
              "get and patch nodes",
              into(w.mark_faulty)})}};
  add_account(group, w.account);
  return in_full(std::move(group));
}

option_group elastic_job_group(cluster_arguments& w) {
  return in_full(option_group{
      "Told by actor-operator",
      {typed_only({scope::master,
                   {"--elastic-job"},
                   "NAME",
                   "The ElasticJob, in this pod's namespace, whose pods this master keeps",
                   into(w.elastic_job)}),
       typed_only(
           among({"none", "volcano", "scheduler-plugins"}, {scope::master,
                                                            {"--gang"},
                                                            "SCHEDULER",
                                                            "Whose gang the pods belong to (none)",
                                                            into(w.gang)}))}});
}

result<cluster_options> derive_cluster(const cluster_arguments& w) {
  if (auto wrong = check_account(w.account); !wrong)
    return tl::make_unexpected(wrong.error());
  return cluster_options{w.mark_faulty == "taint"    ? faulty_machine::is_tainted
                         : w.mark_faulty == "cordon" ? faulty_machine::is_cordoned
                                                     : faulty_machine::is_left,
                         w.account, w.elastic_job, w.gang};
}

} // namespace troupe::launch
