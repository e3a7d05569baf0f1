#include "kube/job_status.hpp"

#include "kube/informer_core.hpp"
#include "kube/job_objects.hpp"
#include "kube/node_pod.hpp"
#include "kube/objects.hpp"

#include <boost/json/parse.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <string>

using namespace troupe;
using namespace troupe::kube;
namespace json = boost::json;

namespace {

job_pod pod_of(int id, const std::string& rank, const std::string& restarts,
               const std::string& phase = "Running") {
  // As the operator hears of it.
  return read_job_pod(slim_pod(json::object{
      {"metadata",
       json::object{{"uid", fmt::format("u{}", id)},
                    {"name", fmt::format("words-edljob-worker-{}", id)},
                    {"labels", json::object{{role_label, worker_role}, {rank_label, rank}}},
                    {"annotations", json::object{{restarts_annotation, restarts}}}}},
      {"status", json::object{{"phase", phase}}}}));
}

json::value status_of(const std::vector<job_pod>& pods) {
  std::map<std::string, job_pod> all;
  for (const auto& p : pods)
    all[p.uid] = p;
  job_status s;
  s.count(all);
  return json::parse(s.patch("u")).as_array().at(1).at("value");
}

} // namespace

TEST_CASE("a job's restarts are those of its ranks, each of whose pods has the count so far") {
  CHECK(number(status_of({}), {"restarts"}) == 0);
  CHECK(number(status_of({pod_of(0, "0", "0"), pod_of(1, "1", "0")}), {"restarts"}) == 0);
  CHECK(number(status_of({pod_of(0, "0", "0", "Failed"), pod_of(2, "0", "1", "Failed"),
                          pod_of(3, "0", "2"), pod_of(1, "1", "0", "Failed"), pod_of(4, "1", "1")}),
               {"restarts"}) == 3);
  CHECK(number(status_of({pod_of(0, "0", "")}), {"restarts"}) == 0);
}

TEST_CASE("a job's nodes are its workers' pods that run") {
  const auto status = status_of({pod_of(0, "0", "0"), pod_of(1, "1", "0", "Pending"),
                                 pod_of(2, "2", "0", "Failed"), pod_of(3, "2", "1")});
  CHECK(number(status, {"status", "replicaStatuses", "worker", "active"}) == 2);
}
