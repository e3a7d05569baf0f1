#include "kube/job_objects.hpp"

#include "kube/objects.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::kube {

namespace {

namespace json = boost::json;

constexpr auto rights = "rbac.authorization.k8s.io";
constexpr auto manager = "troupe-operator";
/// Below /run/secrets: where a token may be read by the launcher's rules.
constexpr auto token_directory = "/run/secrets/troupe";
constexpr auto topology_directory = "/etc/troupe/topology";
/// By which a PodMonitor finds it.
constexpr auto metrics_port_name = "metrics";

json::object labels_of(const elastic_job& job) {
  return {{job_label, label_of(job.name)},
          {job_uid_label, job.uid},
          {"app.kubernetes.io/managed-by", "troupe"}};
}

json::object metadata(const elastic_job& job, const std::string& name) {
  return {{"name", name},
          {"namespace", job.name_space},
          {"labels", labels_of(job)},
          {"ownerReferences", json::array{owned_by(job)}}};
}

json::object object(const char* version, const char* kind, json::object meta) {
  return {{"apiVersion", version}, {"kind", kind}, {"metadata", std::move(meta)}};
}

json::object rule(json::array groups, json::array resources, json::array verbs) {
  return {{"apiGroups", std::move(groups)},
          {"resources", std::move(resources)},
          {"verbs", std::move(verbs)}};
}

json::array subject(const elastic_job& job) {
  return {json::object{
      {"kind", "ServiceAccount"}, {"name", master_name(job.name)}, {"namespace", job.name_space}}};
}

/// What the master asks for: its pods, its job, and where it keeps its journal.
json::object role_of(const elastic_job& job) {
  auto role = object("rbac.authorization.k8s.io/v1", "Role", metadata(job, master_name(job.name)));
  role["rules"] = json::array{
      rule({""}, {"pods"}, {"get", "list", "watch", "create", "delete"}),
      rule({""}, {"configmaps"}, {"get", "create", "update", "patch"}),
      rule({""}, {"events"}, {"create", "patch"}),
      rule({"elastic.iml.github.io"}, {"elasticjobs", "scaleplans"}, {"get", "list", "watch"}),
      rule({"elastic.iml.github.io"}, {"scaleplans/status"}, {"patch"}),
  };
  return role;
}

json::object binding_of(const elastic_job& job) {
  auto binding =
      object("rbac.authorization.k8s.io/v1", "RoleBinding", metadata(job, master_name(job.name)));
  binding["roleRef"] =
      json::object{{"apiGroup", rights}, {"kind", "Role"}, {"name", master_name(job.name)}};
  binding["subjects"] = subject(job);
  return binding;
}

json::object service_of(const elastic_job& job, master_found_by how) {
  json::object selector{{job_label, label_of(job.name)}, {role_label, master_role}};
  if (how == master_found_by::uid)
    selector[job_uid_label] = job.uid;
  auto service = object("v1", "Service", metadata(job, master_name(job.name)));
  service["spec"] = json::object{{"selector", std::move(selector)},
                                 {"ports", json::array{json::object{{"name", "master"},
                                                                    {"port", master_port},
                                                                    {"targetPort", master_port},
                                                                    {"protocol", "TCP"}}}}};
  return service;
}

/// A drain takes one pod at a time: each leaves with its workers asked to save.
json::object budget_of(const elastic_job& job) {
  auto budget = object("policy/v1", "PodDisruptionBudget",
                       metadata(job, name_of_part("elasticjob", job.name, "")));
  budget["spec"] = json::object{
      {"maxUnavailable", 1},
      {"selector", json::object{{"matchLabels", json::object{{job_label, label_of(job.name)},
                                                             {role_label, worker_role}}}}}};
  return budget;
}

json::object volcano_group(const elastic_job& job, const operator_policy& policy) {
  auto group = object("scheduling.volcano.sh/v1beta1", "PodGroup",
                      metadata(job, name_of_part("elasticjob", job.name, "")));
  json::object spec{{"minMember", job.nodes.min + 1}, {"queue", "default"}};
  if (policy.group_size > 1) {
    json::object sub{
        {"name", "group"},
        {"subGroupSize", policy.group_size},
        {"labelSelector", json::object{{"matchLabels", json::object{{role_label, worker_role}}}}},
        {"networkTopology", json::object{{"mode", "hard"}}}};
    if (!policy.group_label.empty())
      sub["matchLabelKeys"] = json::array{policy.group_label};
    spec["subGroupPolicy"] = json::array{std::move(sub)};
  }
  group["spec"] = std::move(spec);
  return group;
}

json::object plugins_group(const elastic_job& job) {
  auto group = object("scheduling.x-k8s.io/v1alpha1", "PodGroup",
                      metadata(job, name_of_part("elasticjob", job.name, "")));
  group["spec"] = json::object{{"minMember", job.nodes.min + 1}};
  return group;
}

json::object machines_binding(const elastic_job& job, const operator_policy& policy) {
  auto binding = object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding",
                        {{"name", machines_binding_name(job)}, {"labels", labels_of(job)}});
  binding["roleRef"] =
      json::object{{"apiGroup", rights}, {"kind", "ClusterRole"}, {"name", policy.machines_role}};
  binding["subjects"] = subject(job);
  return binding;
}

/// A job whose own words say where its master serves metrics is left to that.
bool serves_metrics_by(const operator_policy& policy, const elastic_job& job) {
  const auto& own = job.master_arguments;
  return policy.master_metrics_port != 0 && std::none_of(own.begin(), own.end(), [](auto word) {
           word = word.substr(0, word.find('='));
           std::replace(word.begin(), word.end(), '_', '-'); // either is read
           return word == "--metrics-listen";
         });
}

json::array master_command(const elastic_job& job, const operator_policy& policy, bool topology) {
  json::array words{"actor-master",
                    fmt::format("--listen=*:{}", master_port),
                    fmt::format("--nnodes={}:{}", job.nodes.min, job.nodes.max),
                    "--rdzv-id=" + job.name,
                    "--elastic-job=" + job.name,
                    "--journal=configmap:" + journal_name(job.name),
                    "--rdzv-conf=join_timeout=1800"};
  if (!policy.machines_role.empty())
    words.emplace_back("--mark-faulty=" + policy.mark_faulty);
  if (policy.gang != gang::none)
    words.emplace_back(policy.gang == gang::volcano ? "--gang=volcano"
                                                    : "--gang=scheduler-plugins");
  if (topology)
    words.emplace_back(fmt::format("--topology={}/topology_config", topology_directory));
  if (serves_metrics_by(policy, job))
    words.emplace_back(fmt::format("--metrics-listen={}", policy.master_metrics_port));
  for (const auto& word : job.master_arguments)
    words.emplace_back(word);
  return words;
}

/// As any user, without rights on its machine.
json::object security() {
  return {{"runAsNonRoot", true},
          {"runAsUser", 1000},
          {"runAsGroup", 1000},
          {"fsGroup", 1000},
          {"seccompProfile", json::object{{"type", "RuntimeDefault"}}}};
}

json::object volume_at(const char* name, const char* path) {
  return {{"name", name}, {"mountPath", path}, {"readOnly", true}};
}

json::object master_container(const elastic_job& job, const operator_policy& policy,
                              bool topology) {
  json::array mounts{volume_at("token", token_directory)};
  if (topology)
    mounts.push_back(volume_at("topology", topology_directory));
  json::object container{
      {"name", "master"},
      {"image", policy.master_image},
      {"command", master_command(job, policy, topology)},
      {"terminationMessagePolicy", "FallbackToLogsOnError"}, // why it failed, for the job's status
      {"env", json::array{json::object{{"name", "TROUPE_TOKEN_FILE"},
                                       {"value", fmt::format("{}/token", token_directory)}},
                          json::object{{"name", "ELASTIC_JOB_NAME"}, {"value", job.name}},
                          json::object{{"name", "JOB_UID"}, {"value", job.uid}}}},
      {"resources", json::object{{"requests", json::object{{"cpu", "250m"}, {"memory", "256Mi"}}},
                                 {"limits", json::object{{"memory", "2Gi"}}}}},
      {"securityContext",
       json::object{{"allowPrivilegeEscalation", false},
                    {"capabilities", json::object{{"drop", json::array{"ALL"}}}}}},
      {"volumeMounts", std::move(mounts)}};
  if (!policy.master_image_pull_policy.empty())
    container["imagePullPolicy"] = policy.master_image_pull_policy;
  if (serves_metrics_by(policy, job))
    container["ports"] = json::array{json::object{{"name", metrics_port_name},
                                                  {"containerPort", policy.master_metrics_port},
                                                  {"protocol", "TCP"}}};
  return container;
}

json::object toleration(const char* key) {
  return {{"key", key}, {"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", 30}};
}

} // namespace

std::string label_of(const std::string& job) {
  return name_of_part("", job, "");
}

std::string master_name(const std::string& job) {
  return name_of_part("elasticjob", job, master_role);
}

std::string master_pod_name(const std::string& job, std::uint32_t attempt) {
  return name_of_part("elasticjob", job, fmt::format("{}-{}", master_role, attempt));
}

std::string token_secret_name(const std::string& job) {
  return name_of_part("elasticjob", job, "token");
}

std::string journal_name(const std::string& job) {
  return name_of_part("elasticjob", job, "journal");
}

std::string machines_binding_name(const elastic_job& job) {
  return name_of_part("troupe", job.name_space + "-" + job.name, "machines");
}

std::string pods_of(const std::string& job) {
  return fmt::format("{}={}", job_label, label_of(job));
}

json::object owned_by(const elastic_job& job) {
  return {{"apiVersion", elastic_job_group},
          {"kind", "ElasticJob"},
          {"name", job.name},
          {"uid", job.uid},
          {"controller", true},
          {"blockOwnerDeletion", true}};
}

bool is_of_a_namesake(const json::value& object, const elastic_job& job) {
  auto uid = elastic_job_of(object);
  // An orphan (--cascade=orphan) has no owner any more.
  if (uid.empty())
    uid = label(object, job_uid_label);
  return !uid.empty() && uid != job.uid;
}

api_request apply(const json::object& what, const std::string& plural,
                  const std::string& name_space) {
  const std::string version(what.at("apiVersion").as_string());
  const std::string name(what.at("metadata").as_object().at("name").as_string());
  return {"PATCH",
          fmt::format("{}{}{}/{}/{}?fieldManager={}&force=true",
                      version == "v1" ? "/api/v1" : "/apis/" + version,
                      name_space.empty() ? "" : "/namespaces/", name_space, plural, name, manager),
          "application/apply-patch+yaml", json::serialize(what)};
}

std::vector<api_request> what_a_master_needs(const elastic_job& job, const operator_policy& policy,
                                             master_found_by how) {
  const auto& in = job.name_space;
  std::vector<api_request> all{
      apply(object("v1", "ServiceAccount", metadata(job, master_name(job.name))), "serviceaccounts",
            in),
      apply(role_of(job), "roles", in),
      apply(binding_of(job), "rolebindings", in),
      apply(service_of(job, how), "services", in),
      // Empty, and the job's: what the master would make by itself would outlive the job.
      apply(object("v1", "ConfigMap", metadata(job, journal_name(job.name))), "configmaps", in),
      apply(budget_of(job), "poddisruptionbudgets", in),
  };
  if (!policy.machines_role.empty())
    all.push_back(apply(machines_binding(job, policy), "clusterrolebindings", ""));
  if (policy.gang == gang::volcano)
    all.push_back(apply(volcano_group(job, policy), "podgroups", in));
  else if (policy.gang == gang::scheduler_plugins)
    all.push_back(apply(plugins_group(job), "podgroups", in));
  return all;
}

std::optional<api_request> budget_before_1_21(const api_request& need) {
  constexpr std::string_view path = "/apis/policy/v1/", version = "policy/v1";
  if (need.target.rfind(path, 0) != 0)
    return std::nullopt;
  auto older = need;
  older.target.replace(0, path.size(), "/apis/policy/v1beta1/");
  older.body.replace(older.body.find(version), version.size(), "policy/v1beta1");
  return older;
}

api_request create_token(const elastic_job& job, const std::string& token) {
  auto secret = object("v1", "Secret", metadata(job, token_secret_name(job.name)));
  secret["type"] = "Opaque";
  secret["stringData"] = json::object{{"token", token}};
  return {"POST", fmt::format("/api/v1/namespaces/{}/secrets", job.name_space), "application/json",
          json::serialize(secret)};
}

namespace {

std::string secret_path(const elastic_job& job) {
  return fmt::format("/api/v1/namespaces/{}/secrets/{}", job.name_space,
                     token_secret_name(job.name));
}

api_request remove(std::string path, const std::string& uid) {
  return {"DELETE", std::move(path), "application/json",
          json::serialize(json::object{{"preconditions", json::object{{"uid", uid}}}})};
}

} // namespace

std::string elastic_collection(const std::string& name_space, const char* plural) {
  return fmt::format("/apis/{}/namespaces/{}/{}", elastic_job_group, name_space, plural);
}

std::string job_path(const elastic_job& job) {
  return fmt::format("{}/{}", elastic_collection(job.name_space, "elasticjobs"), job.name);
}

api_request remove_job(const elastic_job& job) {
  return remove(job_path(job), job.uid);
}

api_request look_at_token(const elastic_job& job) {
  return {"GET", secret_path(job), "", ""};
}

api_request remove_token(const elastic_job& job, const std::string& uid) {
  return remove(secret_path(job), uid);
}

api_request remove_pod(const elastic_job& job, const std::string& name, const std::string& uid) {
  return remove(fmt::format("/api/v1/namespaces/{}/pods/{}", job.name_space, name), uid);
}

api_request create_master_pod(const elastic_job& job, const operator_policy& policy,
                              std::uint32_t attempt, bool topology) {
  auto pod = object("v1", "Pod", metadata(job, master_pod_name(job.name, attempt)));
  auto& labels = pod["metadata"].as_object()["labels"].as_object();
  labels[role_label] = master_role;
  labels[index_label] = std::to_string(attempt);
  const auto group = name_of_part("elasticjob", job.name, "");
  if (policy.gang == gang::volcano)
    pod["metadata"].as_object()["annotations"] =
        json::object{{"scheduling.k8s.io/group-name", group}};
  else if (policy.gang == gang::scheduler_plugins)
    labels["scheduling.x-k8s.io/pod-group"] = group;
  json::array volumes{
      json::object{{"name", "token"},
                   {"secret", json::object{{"secretName", token_secret_name(job.name)},
                                           {"defaultMode", 0440}}}}};
  if (topology)
    volumes.push_back(json::object{{"name", "topology"},
                                   {"configMap", json::object{{"name", policy.topology_config}}}});
  pod["spec"] =
      json::object{{"serviceAccountName", master_name(job.name)},
                   // What ends is made anew by the operator, perhaps on another machine.
                   {"restartPolicy", "Never"},
                   {"enableServiceLinks", false},
                   // A master that is ended has nothing to do before: what runs goes on without it.
                   {"terminationGracePeriodSeconds", 1},
                   {"securityContext", security()},
                   {"tolerations", json::array{toleration("node.kubernetes.io/unreachable"),
                                               toleration("node.kubernetes.io/not-ready")}},
                   {"containers", json::array{master_container(job, policy, topology)}},
                   {"volumes", std::move(volumes)}};
  auto& spec = pod["spec"].as_object();
  if (policy.gang == gang::volcano)
    spec["schedulerName"] = "volcano";
  // Its image may be in the registry of theirs, and it is worth as much as what it keeps alive.
  const json::value workers(job.pod_template);
  for (const auto* as_of_workers : {"imagePullSecrets", "priorityClassName", "priority"})
    if (const auto* said = member(workers, {"spec", as_of_workers}))
      spec[as_of_workers] = *said;
  return {"POST", fmt::format("/api/v1/namespaces/{}/pods", job.name_space), "application/json",
          json::serialize(pod)};
}

api_request remove_machines_binding(const elastic_job& job) {
  return {"DELETE",
          fmt::format("/apis/{}/v1/clusterrolebindings/{}", rights, machines_binding_name(job)), "",
          ""};
}

} // namespace troupe::kube
