#include "kube/job_objects.hpp"

#include "tests/kube/operated_job.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <doctest/doctest.h>

#include <string>

using namespace troupe;
using namespace troupe::kube;
using namespace troupe::testing;

namespace json = boost::json;

TEST_SUITE("what an ElasticJob is made of") {
  TEST_CASE("the master's pod listens on both families, and has its workers' registry and worth") {
    operated o;
    auto& spec = o.object.at("spec").at("replicaSpecs").at("worker").at("template").at("spec");
    spec.as_object()["imagePullSecrets"] = json::array{json::object{{"name", "our-registry"}}};
    spec.as_object()["priorityClassName"] = "training";
    o.is_told();
    const auto pod = json::parse(o.made);
    CHECK(pod.at("spec").at("imagePullSecrets").at(0).at("name") == "our-registry");
    CHECK(pod.at("spec").at("priorityClassName") == "training");
    CHECK_FALSE(pod.at("spec").as_object().contains("nodeSelector"));
    CHECK(json::serialize(pod.at("spec").at("containers").at(0).at("command"))
              .find("\"--listen=*:50001\"") != std::string::npos);
  }

  TEST_CASE("a master serves metrics where the operator was told so, or where its job says") {
    const auto container_of = [](operated& o) {
      o.is_told();
      return json::parse(o.made).at("spec").at("containers").at(0);
    };
    operated silent;
    CHECK_FALSE(container_of(silent).as_object().contains("ports"));
    operator_policy policy;
    policy.master_metrics_port = 9500;
    operated o(policy);
    const auto container = container_of(o);
    CHECK(container.at("ports").at(0).at("name") == "metrics");
    CHECK(container.at("ports").at(0).at("containerPort") == 9500);
    CHECK(json::serialize(container.at("command")).find("\"--metrics-listen=9500\"") !=
          std::string::npos);
    for (const auto* said : {"[\"--metrics-listen=:9600\"]", "[\"--metrics_listen\", \"9600\"]"}) {
      operated own(policy);
      own.object.at("metadata").as_object()["annotations"] =
          json::object{{"troupe/master-args", said}};
      const auto as_said = container_of(own);
      CHECK_FALSE(as_said.as_object().contains("ports"));
      CHECK(json::serialize(as_said.at("command")).find("9500") == std::string::npos);
    }
  }
}

TEST_CASE("what an earlier job of the name has left is known by its owner, or by its label") {
  elastic_job job;
  job.uid = "u1";
  const auto is_left = [&](const char* metadata) {
    return is_of_a_namesake(boost::json::parse(std::string(R"({"metadata":)") + metadata + "}"),
                            job);
  };
  CHECK(is_left(R"({"ownerReferences":[{"kind":"ElasticJob","uid":"u0","controller":true}]})"));
  CHECK(is_left(R"({"labels":{"troupe/job-uid":"u0"}})")); // an orphan
  CHECK(!is_left(R"({"labels":{"troupe/job-uid":"u1"}})"));
  CHECK(!is_left(R"({"ownerReferences":[{"kind":"ElasticJob","uid":"u1","controller":true}],
                     "labels":{"troupe/job-uid":"u0"}})"));
  CHECK(!is_left(R"({"ownerReferences":[{"kind":"SealedSecret","uid":"x","controller":true}]})"));
  CHECK(!is_left("{}")); // a person's
}
