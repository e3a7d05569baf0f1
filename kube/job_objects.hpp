#pragma once

#include "kube/api.hpp"
#include "kube/elastic_job.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::kube {

/// Which scheduler places all pods of a job together or none.
enum class gang : std::uint8_t { none, volcano, scheduler_plugins };

/// What the operator was told, for all its jobs.
struct operator_policy {
  std::string master_image;
  std::string master_image_pull_policy; ///< empty: as the API server fills it in
  kube::gang gang = kube::gang::none;
  std::uint32_t group_size = 0; ///< of a dragonfly topology: pods placed together; 0: none
  std::string group_label;      ///< key of the machines' label that tells groups apart
  std::string topology_config;  ///< name of the ConfigMap; empty: none is looked at
  std::string machines_role;    ///< ClusterRole by which masters mark machines; empty: they may not
  std::string mark_faulty;      ///< "taint", "cordon"; with machines_role
  std::uint16_t master_metrics_port = 0; ///< 0: masters serve no metrics, unless their job says so
};

/// Labels of everything that belongs to a job, as DLRover's tools look for them.
inline constexpr auto job_label = "elasticjob.dlrover/name";
/// Tells what is of this ElasticJob from what is of others that had its name. It is on what an
/// operator of today makes; owner references are on everything.
inline constexpr auto job_uid_label = "troupe/job-uid";
inline constexpr auto role_label = "elasticjob.dlrover/replica-type";
inline constexpr auto index_label = "elasticjob.dlrover/replica-index";
inline constexpr auto rank_label = "elasticjob.dlrover/rank-index";
inline constexpr auto master_role = "dlrover-master";
inline constexpr auto worker_role = "worker";
/// The port of a job's master.
inline constexpr std::uint16_t master_port = 50001;
/// Of an ElasticJob for which something is made that no owner reference can cover.
inline constexpr auto finalizer = "troupe/machines";

/// Names of what belongs to a job.
std::string label_of(const std::string& job);    ///< the value of job_label
std::string master_name(const std::string& job); ///< service, account, role, role binding
std::string master_pod_name(const std::string& job, std::uint32_t attempt);
std::string token_secret_name(const std::string& job);
std::string journal_name(const std::string& job);

/// labelSelector of all pods of a job.
std::string pods_of(const std::string& job);

/// An owner reference: what has it is removed with the job.
boost::json::object owned_by(const elastic_job& job);

/// Another ElasticJob's, as of one that was deleted and had the same name: what the cluster's
/// collector has not removed yet, or is not to remove. What people or other controllers have made
/// is not.
bool is_of_a_namesake(const boost::json::value& object, const elastic_job& job);

/// One request of server-side apply: makes the object what it has to be, whether it is there or
/// not. https://kubernetes.io/docs/reference/using-api/server-side-apply/
api_request apply(const boost::json::object& object, const std::string& plural,
                  const std::string& name_space);

/// How the service finds the master's pod. By its name alone it would find one that a deleted job
/// of this name has left as well; by the identity it would lose one that an older operator has
/// made.
enum class master_found_by : std::uint8_t { name, uid };

/// What a job needs before its master's pod, in this order, one request each: account, role and
/// binding of the master, service, budget of disruptions, gang.
std::vector<api_request> what_a_master_needs(const elastic_job& job, const operator_policy& policy,
                                             master_found_by how);

/// The same request for a disruption budget, to a server before Kubernetes 1.21, which has it in
/// policy/v1beta1; none: it was one already, or is of something else.
std::optional<api_request> budget_before_1_21(const api_request& need);

/// Refused (409) where it is there: a token is never replaced.
api_request create_token(const elastic_job& job, const std::string& token);
api_request look_at_token(const elastic_job& job);
/// The one of this identity; one that has come under its name stays.
api_request remove_token(const elastic_job& job, const std::string& uid);

std::string job_path(const elastic_job& job);
/// Of "elasticjobs" or "scaleplans".
std::string elastic_collection(const std::string& name_space, const char* plural);
api_request remove_job(const elastic_job& job);

api_request remove_pod(const elastic_job& job, const std::string& name, const std::string& uid);

/// `topology`: the job's ConfigMap of that name has a topology.
api_request create_master_pod(const elastic_job& job, const operator_policy& policy,
                              std::uint32_t attempt, bool topology);

/// With machines_role: what belongs to no namespace, and has to be removed by hand.
std::string machines_binding_name(const elastic_job& job);
api_request remove_machines_binding(const elastic_job& job);

} // namespace troupe::kube
