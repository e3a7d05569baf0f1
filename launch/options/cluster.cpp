#include "launch/options/cluster.hpp"

#include "launch/options/arguments.hpp"

namespace troupe::launch {

option_group cluster_group(cluster_arguments& w) {
  return in_full(option_group{
      "Kubernetes, told to the node or program that runs the master",
      {among({"none", "taint", "cordon"},
             {{"--mark-faulty"},
              "HOW",
              "What is done with a machine whose hardware is broken: taint (troupe/faulty="
              "JOB:NoSchedule), cordon, or none (default); needs a role that may list pods, and "
              "get and patch nodes",
              into(w.mark_faulty)}),
       {{"--service-account"},
        "DIR",
        "Where the pod has its service account (/var/run/secrets/kubernetes.io/serviceaccount)",
        into(w.service_account)}}});
}

option_group elastic_job_group(cluster_arguments& w) {
  return in_full(option_group{
      "Told by actor-operator",
      {typed_only({{"--elastic-job"},
                   "NAME",
                   "The ElasticJob, in this pod's namespace, whose pods this master keeps",
                   into(w.elastic_job)}),
       typed_only(among(
           {"none", "volcano", "scheduler-plugins"},
           {{"--gang"}, "SCHEDULER", "Whose gang the pods belong to (none)", into(w.gang)}))}});
}

cluster_options derive_cluster(const cluster_arguments& w) {
  return {w.mark_faulty == "taint"    ? faulty_machine::is_tainted
          : w.mark_faulty == "cordon" ? faulty_machine::is_cordoned
                                      : faulty_machine::is_left,
          w.service_account, w.elastic_job, w.gang};
}

} // namespace troupe::launch
