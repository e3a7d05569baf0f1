#include "kube/node_pod.hpp"

#include "kube/job_objects.hpp"
#include "kube/objects.hpp"
#include "tests/kube/kept_pods.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::kube;
namespace json = boost::json;

namespace {

json::value made(const json::value& pod_template, const node_pod_part& part,
                 const node_pods_job& job = testing::job_of_tests()) {
  const auto r = create_node_pod(job, pod_template, part);
  CHECK(r.method == "POST");
  CHECK(r.target == "/api/v1/namespaces/jobs/pods");
  return json::parse(r.body);
}

std::string variable_of(const json::value& pod, std::size_t container, const std::string& name) {
  for (const auto& each : items(items(pod, {"spec", "containers"})[container], {"env"}))
    if (text(each, {"name"}) == name)
      return member(each, {"value"}) != nullptr ? text(each, {"value"})
                                                : json::serialize(*member(each, {"valueFrom"}));
  return "none";
}

node_pod ended(const std::string& status) {
  return read_node_pod(json::parse(R"({"spec":{"containers":[{"name":"main","resources":)"
                                   R"({"requests":{"memory":"2Gi"}}},{"name":"log"}]},"status":)" +
                                   status + "}"));
}

std::string terminated(const std::string& name, int code, const std::string& reason = "Error") {
  return R"({"name":")" + name + R"(","state":{"terminated":{"exitCode":)" + std::to_string(code) +
         R"(,"reason":")" + reason + "\"}}}";
}

} // namespace

TEST_CASE("the template goes through, and what makes it a node's pod is added") {
  node_pod_part part;
  part.rank = 3;
  part.id = 12;
  part.nodes = 4;
  part.relaunches = 2;
  part.restarts = 1;
  const auto pod = made(testing::template_of_tests(), part);
  CHECK(text(pod, {"metadata", "name"}) == "train-edljob-worker-12");
  CHECK(*member(pod, {"metadata", "labels"}) == json::parse(R"({
      "team":"vision","elasticjob.dlrover/name":"train","elasticjob.dlrover/replica-type":"worker",
      "elasticjob.dlrover/replica-index":"12","elasticjob.dlrover/rank-index":"3",
      "elasticjob.dlrover/relaunch-count":"2","troupe/job-uid":"uid-of-job",
      "app.kubernetes.io/managed-by":"troupe"})"));
  CHECK(*member(pod, {"metadata", "ownerReferences"}) == json::parse(R"([{
      "apiVersion":"elastic.iml.github.io/v1alpha1","kind":"ElasticJob","name":"train",
      "uid":"uid-of-job","controller":true}])"));
  CHECK(annotation(pod, restarts_annotation) == "1");
  CHECK(text(pod, {"spec", "restartPolicy"}) == "Never");
  CHECK(*member(items(pod, {"spec", "containers"})[0], {"resources"}) ==
        json::parse(R"({"limits":{"memory":"16Gi","cpu":8}})"));
}

TEST_CASE("variables, but for those that a container has") {
  const auto pod = made(json::parse(R"({"spec":{"containers":[
      {"name":"a","env":[{"name":"NODE_NUM","value":"7"},{"name":"TROUPE_TOKEN_FILE","value":"f"}]},
      {"name":"b"}]}})"),
                        {3, 12, 4, 0, 0, {}});
  const std::pair<const char*, const char*> expected[] = {
      {"POD_NAME", R"({"fieldRef":{"fieldPath":"metadata.name"}})"},
      {"POD_IP", R"({"fieldRef":{"fieldPath":"status.podIP"}})"},
      {"ELASTIC_JOB_NAME", "train"},
      {"NODE_TYPE", "worker"},
      {"NODE_ID", "12"},
      {"NODE_RANK", "3"},
      {"WORKER_TYPE", "worker"},
      {"WORKER_ID", "12"},
      {"WORKER_NUM", "4"},
      {"WORKER_RANK", "3"},
      {"DLROVER_MASTER_ADDR", "elasticjob-train-dlrover-master:50001"}};
  for (const auto& [name, value] : expected)
    for (const std::size_t container : {0u, 1u})
      CHECK(variable_of(pod, container, name) == value);
  CHECK(variable_of(pod, 0, "NODE_NUM") == "7");
  CHECK(variable_of(pod, 1, "NODE_NUM") == "4");
  // Both at once are refused by the launcher.
  CHECK(variable_of(pod, 0, "TROUPE_TOKEN") == "none");
  CHECK(variable_of(pod, 1, "TROUPE_TOKEN") ==
        R"({"secretKeyRef":{"name":"train-token","key":"token"}})");
}

TEST_CASE("a template without anything is no reason to stop") {
  for (const char* odd : {"{}", "null", R"({"metadata":7,"spec":[]})",
                          R"({"metadata":{"labels":[]},"spec":{"containers":{"a":1}}})",
                          R"({"spec":{"containers":[1,{"env":{}}]}})"}) {
    const auto pod = made(json::parse(odd), {});
    CHECK(label(pod, rank_label) == "0");
    CHECK(text(pod, {"spec", "restartPolicy"}) == "Never");
  }
}

TEST_CASE("machines are avoided beside what the template asks for") {
  const auto terms = [](const char* spec, avoided_machines::list avoided) {
    node_pod_part part;
    part.avoided = std::move(avoided);
    const auto pod = made(json::parse(std::string(R"({"spec":)") + spec + "}"), part);
    const auto* found =
        member(pod, {"spec", "affinity", "nodeAffinity",
                     "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
    return found != nullptr ? json::serialize(*found) : "none";
  };
  CHECK(terms("{}", {}) == "none");
  CHECK(terms("{}", {{"a", "b"}, false}) ==
        R"([{"matchFields":[{"key":"metadata.name","operator":"NotIn","values":["a"]},)"
        R"({"key":"metadata.name","operator":"NotIn","values":["b"]}]}])");
  // One of the terms has to hold, so it stands in each.
  const auto theirs = R"({"affinity":{"nodeAffinity":{)"
                      R"("requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[)"
                      R"({"matchExpressions":[1]},{"matchFields":[2]}]}}}})";
  CHECK(terms(theirs, {{"a"}, false}) ==
        R"([{"matchExpressions":[1],"matchFields":[{"key":"metadata.name","operator":"NotIn",)"
        R"("values":["a"]}]},{"matchFields":[2,{"key":"metadata.name","operator":"NotIn",)"
        R"("values":["a"]}]}])");
  // It is placed already.
  CHECK(terms(R"({"nodeName":"a"})", {{"a"}, false}) == "none");

  node_pod_part part;
  CHECK_FALSE(read_node_pod(made(json::object{}, part)).avoids_for_a_while);
  part.avoided = {{"a"}, true};
  CHECK(read_node_pod(made(json::object{}, part)).avoids_for_a_while);
}

TEST_CASE("names and labels fit, and two long names are two") {
  node_pods_job a = testing::job_of_tests(), b = a;
  a.name = std::string(70, 'x') + "a";
  b.name = std::string(70, 'x') + "b";
  CHECK(node_pod_name(a.name, 1'234'567).size() <= 63);
  CHECK(node_pod_name(a.name, 7) != node_pod_name(b.name, 7));
  CHECK(node_pod_name("train", 7) == "train-edljob-worker-7");
  const auto pod = made(json::object{}, {}, a);
  CHECK(label(pod, job_label).size() <= 63);
  CHECK(label(pod, job_label) == label_of(a.name));
}

TEST_CASE("quantities of memory") {
  const std::pair<const char*, std::uint64_t> good[] = {{"0", 0},
                                                        {"1000", 1000},
                                                        {"16Gi", 16ull << 30},
                                                        {"1.5Gi", 3ull << 29},
                                                        {"128M", 128'000'000},
                                                        {"129e6", 129'000'000},
                                                        {"1E3", 1000},
                                                        {"500m", 1},
                                                        {"64Ki", 65536},
                                                        {"1k", 1000}};
  for (const auto& [quantity, bytes] : good)
    CHECK(bytes_of_quantity(quantity) == bytes);
  for (const char* bad : {"", "Gi", "-1", "1 Gi", "1.2.3", ".", "1Zi", "1e", "1e9999", "9e18Gi",
                          "99999999Ei", "0x10"})
    CHECK_MESSAGE(!bytes_of_quantity(bad), bad);
}

TEST_CASE("memory is raised by half, to a bound") {
  CHECK(raised_memory(1000, 10'000) == 1500);
  CHECK(raised_memory(8000, 10'000) == 10'000);
  CHECK(raised_memory(10'000, 10'000) == 10'000);
  CHECK(raised_memory(20'000, 10'000) == 20'000);
  CHECK(raised_memory(1000, 0) == 1000);

  const auto with = [](const char* resources, std::uint64_t least) {
    node_pod_part part;
    part.memory["main"] = least;
    const auto pod = made(json::parse(std::string(R"({"spec":{"containers":[{"name":"main",)") +
                                      R"("resources":)" + resources + "}]}}"),
                          part);
    return json::serialize(*member(items(pod, {"spec", "containers"})[0], {"resources"}));
  };
  CHECK(with(R"({"limits":{"memory":"1000"},"requests":{"memory":800,"cpu":1}})", 1500) ==
        R"({"limits":{"memory":"1500"},"requests":{"memory":"1200","cpu":1}})");
  CHECK(with(R"({"limits":{"memory":"1000"}})", 1500) == R"({"limits":{"memory":"1500"}})");
  CHECK(with(R"({"requests":{"memory":"1000"}})", 1500) == R"({"requests":{"memory":"1500"}})");
  CHECK(with(R"({"limits":{"memory":"2000"}})", 1500) == R"({"limits":{"memory":"2000"}})");
  CHECK(with(R"({"limits":{"cpu":1}})", 1500) == R"({"limits":{"cpu":1}})");
}

TEST_CASE("how a pod has ended") {
  struct row {
    std::string status;
    pod_end end;
    const char* words;
  };
  const auto failed = [](const std::string& statuses, const std::string& more = "") {
    return R"({"phase":"Failed","containerStatuses":[)" + statuses + "]" + more + "}";
  };
  const auto disrupted =
      R"(,"conditions":[{"type":"DisruptionTarget","status":"True","reason":"EvictionByEvictionAPI"}])";
  const row rows[] = {
      {R"({"phase":"Succeeded"})", pod_end::done, "it has ended with 0"},
      {failed(terminated("main", 1)), pod_end::failed, "it has ended with 1"},
      {failed(terminated("main", 137)), pod_end::failed, "it has ended with 137"},
      {failed(terminated("main", 143)), pod_end::failed, "it has ended with 143"},
      {failed(terminated("main", 143), disrupted), pod_end::taken, "EvictionByEvictionAPI"},
      {failed(terminated("main", 2)), pod_end::wrong_usage,
       "it has ended with 2 (the command line is wrong)"},
      {failed(terminated("main", 201)), pod_end::hardware, "it has ended with 201 (hardware)"},
      {failed(terminated("main", 202)), pod_end::hardware, "it has ended with 202 (hardware)"},
      {failed(terminated("main", 14)), pod_end::hardware, "it has ended with 14 (hardware)"},
      {failed(terminated("main", 137, "OOMKilled")), pod_end::out_of_memory,
       "it was out of memory"},
      {failed(terminated("main", 247)), pod_end::out_of_memory, "it was out of memory"},
      {failed(terminated("log", 1) + "," + terminated("main", 2)), pod_end::wrong_usage,
       "it has ended with 2 (the command line is wrong)"},
      {failed(terminated("log", 1) + "," + terminated("main", 0)), pod_end::failed,
       "it has ended with 1"},
      {R"({"phase":"Failed","reason":"Evicted","message":"low on\nmemory"})", pod_end::taken,
       "Evicted: low on memory"},
      {R"({"phase":"Failed","reason":"OutOfcpu"})", pod_end::taken, "OutOfcpu"},
      {R"({"phase":"Failed","reason":"DeadlineExceeded"})", pod_end::failed, "DeadlineExceeded"},
      {R"({"phase":"Failed"})", pod_end::failed, "it has failed"},
  };
  for (const auto& r : rows) {
    const auto pod = ended(r.status);
    CHECK_MESSAGE(pod.phase == pod_phase::ended, r.status);
    CHECK_MESSAGE(pod.end == r.end, r.status);
    CHECK(pod.end_in_words == r.words);
  }
  const auto spent = ended(failed(terminated("main", 137, "OOMKilled"))).out_of_memory;
  REQUIRE(spent.size() == 1);
  CHECK(spent[0].container == "main");
  CHECK(spent[0].bytes == 2ull << 30);
}

TEST_CASE("what a pod waits for") {
  const auto waits = [](const std::string& status) {
    const auto pod = ended(status);
    CHECK(pod.phase == pod_phase::pending);
    return pod.waits_for + "|" + pod.waits_for_in_words + (pod.waits_for_image ? "|image" : "");
  };
  CHECK(waits("{}") == "|");
  CHECK(waits(R"({"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False",
                 "reason":"Unschedulable","message":"0/5 nodes are available"}]})") ==
        "Unschedulable|Unschedulable: 0/5 nodes are available");
  CHECK(waits(R"({"phase":"Pending","containerStatuses":[{"state":{"waiting":
                 {"reason":"ContainerCreating"}}}]})") == "|");
  CHECK(waits(R"({"phase":"Pending","containerStatuses":[{"state":{"waiting":
                 {"reason":"ErrImagePull","message":"no such image"}}}]})") ==
        "image|ErrImagePull: no such image|image");
  CHECK(waits(R"({"phase":"Pending","initContainerStatuses":[{"state":{"waiting":
                 {"reason":"CreateContainerConfigError"}}}]})") ==
        "CreateContainerConfigError|CreateContainerConfigError");
}

TEST_CASE("where a pod belongs") {
  const auto pod = read_node_pod(json::parse(R"({
      "metadata":{"namespace":"jobs","name":"train-edljob-worker-12","uid":"u",
        "creationTimestamp":"2026-01-01T00:00:00Z","deletionTimestamp":"2026-01-01T00:00:01Z",
        "ownerReferences":[{"uid":"x"},{"uid":"j","controller":true}],
        "annotations":{"troupe/restarts":"2"},
        "labels":{"elasticjob.dlrover/rank-index":"3","elasticjob.dlrover/relaunch-count":"4",
          "elasticjob.dlrover/replica-type":"worker"}},
      "spec":{"nodeName":"machine-1"},
      "status":{"phase":"Running","podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"},{"ip":"fd::1"}]}})"));
  CHECK(pod.key == "jobs/train-edljob-worker-12");
  CHECK(pod.owner == "j");
  CHECK(pod.role == "worker");
  CHECK(pod.rank == 3);
  CHECK(pod.id == 12);
  CHECK(pod.relaunches == 4);
  CHECK(pod.restarts == 2);
  CHECK(pod.is_terminating);
  CHECK(pod.machine == "machine-1");
  CHECK(pod.addresses == std::vector<std::string>{"10.0.0.1", "fd::1"});
  for (const char* odd :
       {"null", "[]", "7", R"({"metadata":{"labels":{"elasticjob.dlrover/rank-index":"-1"},
                          "name":"x-99999999999999999999"}})"}) {
    const auto other = read_node_pod(json::parse(odd));
    CHECK(!other.rank);
    CHECK(other.id == 0);
  }
}
