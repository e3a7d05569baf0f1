#include "kube/elastic_job.hpp"

#include "kube/job_objects.hpp"
#include "kube/objects.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <doctest/doctest.h>

#include <set>

using namespace troupe;
using namespace troupe::kube;
namespace json = boost::json;

namespace {

/// As the users of DLRover and ms-swift write it.
json::value written() {
  return json::parse(R"({
    "apiVersion": "elastic.iml.github.io/v1alpha1", "kind": "ElasticJob",
    "metadata": {"name": "words", "namespace": "jobs", "uid": "u1", "generation": 2,
                 "resourceVersion": "77", "annotations": {}},
    "spec": {
      "distributionStrategy": "AllreduceStrategy", "optimizeMode": "single-job",
      "replicaSpecs": {"worker": {
        "replicas": 4, "restartCounts": 5,
        "template": {"spec": {"restartPolicy": "Never", "containers": [
          {"name": "main", "image": "words:1", "command": ["sh", "start.sh"]}]}}}}}})");
}

json::object& worker(json::value& job) {
  return job.at("spec").at("replicaSpecs").at("worker").as_object();
}

std::string mistake_in(const json::value& job) {
  const auto read = read_elastic_job(job);
  return read ? "" : read.error().what;
}

} // namespace

TEST_SUITE("an ElasticJob") {
  TEST_CASE("is read as it is written") {
    const auto job = read_elastic_job(written());
    REQUIRE(job);
    CHECK(job->name == "words");
    CHECK(job->nodes == node_range{1, 4});
    CHECK(job->restarts == 5);
    CHECK(job->remarks.empty());
    CHECK(text(job->pod_template, {"spec", "restartPolicy"}) == "Never");
  }

  TEST_CASE("has DLRover's spelling of the same field, too") {
    auto job = written();
    worker(job).erase("restartCounts");
    worker(job)["restartCount"] = 7;
    CHECK(read_elastic_job(job)->restarts == 7);
    worker(job).erase("restartCount");
    CHECK(read_elastic_job(job)->restarts == 3);
  }

  TEST_CASE("may say how few nodes are enough") {
    auto job = written();
    auto& notes = job.at("metadata").at("annotations").as_object();
    notes["troupe/nnodes"] = "2:4";
    CHECK(read_elastic_job(job)->nodes == node_range{2, 4});
    CHECK(read_elastic_job(job)->remarks.empty());
    // Its replicas alone are what `kubectl scale` changes.
    const std::pair<int, node_range> sizes[] = {{6, {2, 6}}, {3, {2, 3}}, {1, {1, 1}}};
    for (const auto& [replicas, range] : sizes) {
      auto scaled = job;
      worker(scaled)["replicas"] = replicas;
      CHECK(read_elastic_job(scaled)->nodes == range);
      CHECK(read_elastic_job(scaled)->remarks.size() == 1);
    }
    for (const auto* wrong : {"0:4", "4:2", "many", "2:"}) {
      notes["troupe/nnodes"] = wrong;
      CHECK(mistake_in(job).find("metadata.annotations['troupe/nnodes'] is '") == 0);
    }
  }

  TEST_CASE("else its command may") {
    const std::pair<const char*, node_range> commands[] = {
        {"actor-launcher --nnodes=2:4 train.py", {2, 4}},
        {"dlrover-run --nnodes 3:$NODE_NUM \\\n train.py", {3, 4}},
        {"dlrover-run --nnodes=\"$NODE_NUM\" train.py", {4, 4}},
        {"torchrun --nnodes 4 train.py", {4, 4}},
        {"torchrun --nnodes $MIN:$MAX train.py", {1, 4}},
        {"sh start.sh", {1, 4}},
        {"torchrun --nnodes", {1, 4}},
        {"torchrun --nnodes 9:12 train.py", {4, 4}},
    };
    for (const auto& [command, nodes] : commands) {
      auto job = written();
      worker(job)["template"].at("spec").at("containers").as_array()[0].as_object()["command"] =
          json::array{"sh", "-c", command};
      CHECK(read_elastic_job(job)->nodes == nodes);
    }
  }

  TEST_CASE("with a mistake names the field") {
    struct {
      std::function<void(json::value&)> make;
      const char* said;
    } const mistakes[] = {
        {[](json::value& j) { j.as_object().erase("spec"); }, "spec is missing"},
        {[](json::value& j) {
           j.at("spec").as_object()["distributionStrategy"] = "ParameterServerStrategy";
         },
         "spec.distributionStrategy is ParameterServerStrategy: only AllreduceStrategy is "
         "possible"},
        {[](json::value& j) { j.at("spec").as_object()["optimizeMode"] = "magic"; },
         "spec.optimizeMode is magic: single-job and manual are possible"},
        {[](json::value& j) { j.at("spec").at("replicaSpecs").as_object().erase("worker"); },
         "spec.replicaSpecs.worker is missing: its pods train"},
        {[](json::value& j) { j.at("spec").at("replicaSpecs").as_object()["ps"] = json::object{}; },
         "spec.replicaSpecs.ps is no role of an AllreduceStrategy: worker is"},
        {[](json::value& j) { worker(j)["replicas"] = 0; },
         "spec.replicaSpecs.worker.replicas is 0: a whole number from 1 to 10000 is possible"},
        {[](json::value& j) { worker(j)["replicas"] = "four"; },
         "spec.replicaSpecs.worker.replicas is \"four\": a whole number from 1 to 10000 is "
         "possible"},
        {[](json::value& j) { worker(j)["template"].at("spec").as_object().erase("containers"); },
         "spec.replicaSpecs.worker.template.spec.containers is missing: one container trains"},
        {[](json::value& j) {
           worker(j)["template"]
               .at("spec")
               .at("containers")
               .as_array()[0]
               .as_object()
               .erase("image");
         },
         "spec.replicaSpecs.worker.template.spec.containers[0].image is missing"},
        {[](json::value& j) {
           j.at("metadata").at("annotations").as_object()["troupe/master-args"] = "--network-check";
         },
         R"(metadata.annotations['troupe/master-args'] is no list of texts in JSON, as ["--network-check"])"},
    };
    for (const auto& m : mistakes) {
      auto job = written();
      m.make(job);
      CHECK(mistake_in(job) == m.said);
    }
  }

  TEST_CASE("tells what MindCluster's words about recovery do here") {
    auto job = written();
    auto& metadata = job.at("metadata").as_object();
    metadata["labels"] =
        json::object{{"process-recover-enable", "on"}, {"fault-scheduling", "force"}};
    metadata.at("annotations").as_object()["recover-strategy"] = "retry,recover";
    auto remarks = read_elastic_job(job)->remarks;
    REQUIRE(remarks.size() == 3);
    CHECK(remarks[0] ==
          "metadata.labels['process-recover-enable'] is 'on': there is no recovery inside of a "
          "running process yet; after each failure all workers are started again on their nodes "
          "and load the newest checkpoint, as often as --max-restarts allows");
    CHECK(remarks[1].find("metadata.labels['fault-scheduling'] is 'force': a pod that has failed "
                          "is made again") == 0);
    CHECK(remarks[2].find("metadata.annotations['recover-strategy'] is 'retry,recover': it does "
                          "not choose yet") == 0);
    // MindCluster's own examples have the labels on the pods as well.
    metadata.erase("labels");
    auto& pods = worker(job).at("template").as_object();
    pods["metadata"] = json::object{{"labels", json::object{{"process-recover-enable", "off"}}}};
    remarks = read_elastic_job(job)->remarks;
    REQUIRE(remarks.size() == 2);
    CHECK(remarks[0].find("spec.replicaSpecs.worker.template.metadata.labels[") == 0);
  }

  TEST_CASE("runs with words about recovery that it does not know, and says so") {
    const auto told_of = [](const json::value& job) {
      const auto read = read_elastic_job(job);
      REQUIRE(read);
      REQUIRE(read->remarks.size() == 1);
      return read->remarks[0];
    };
    auto job = written();
    auto& metadata = job.at("metadata").as_object();
    metadata["labels"] = json::object{{"fault-scheduling", "later"}};
    CHECK(told_of(job) == "metadata.labels['fault-scheduling'] is 'later', which is not known here "
                          "and changes nothing: force, grace, off are possible");
    metadata["labels"] = json::object{{"process-recover-enable", "yes"}};
    CHECK(told_of(job) == "metadata.labels['process-recover-enable'] is 'yes', which is not known "
                          "here and changes nothing: on, pause, off are possible");
    metadata.erase("labels");
    metadata.at("annotations").as_object()["recover-strategy"] = "retry,reboot";
    CHECK(told_of(job) ==
          "metadata.annotations['recover-strategy'] is 'retry,reboot', which is not "
          "known here and changes nothing: 'reboot' is none of retry, recover, "
          "recover-in-place, dump, exit");
  }

  TEST_CASE("says what is taken otherwise than it is written") {
    auto job = written();
    job.at("spec").as_object()["optimizeMode"] = "cluster";
    job.at("spec").at("replicaSpecs").as_object()["dlrover-master"] = json::object{};
    worker(job)["autoScale"] = true;
    CHECK(read_elastic_job(job)->remarks.size() == 3);
  }
}

TEST_SUITE("names of a job's parts") {
  TEST_CASE("are DLRover's where they fit") {
    CHECK(master_pod_name("words", 2) == "elasticjob-words-dlrover-master-2");
    CHECK(label_of("words") == "words");
  }

  TEST_CASE("fit, are labels, and differ for jobs whose long names begin alike") {
    std::set<std::string> names;
    for (const auto& job : {std::string(200, 'a') + "1", std::string(200, 'a') + "2",
                            std::string("a.b"), std::string("a-b"), std::string(63, 'x')}) {
      const auto name = master_name(job);
      CHECK(name.size() <= 63);
      CHECK(name.find('.') == std::string::npos);
      CHECK(as_label(label_of(job)) == label_of(job));
      names.insert(name);
    }
    CHECK(names.size() == 5);
  }
}
