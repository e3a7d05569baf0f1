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
}
