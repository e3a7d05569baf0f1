#include "tests/kube/simulated_api_server.hpp"

#include "kube/objects.hpp"
#include "tests/kube/patches.hpp"
#include "tests/kube/simulated_kubelet.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::testing;
namespace json = boost::json;

namespace {

const std::string pods = "/api/v1/namespaces/jobs/pods";
const std::string jobs = "/apis/elastic.iml.github.io/v1alpha1/namespaces/jobs/elasticjobs";

struct client {
  simulated_api_server server{7};

  kube::api_answer ask(const char* method, const std::string& target, const std::string& body = "",
                       const std::string& type = "application/json") {
    return server.answer({method, target, type, body});
  }
  json::value make(const std::string& name, const std::string& more = "") {
    const auto a = ask("POST", pods, R"({"metadata":{"name":")" + name + "\"" + more + "}}");
    REQUIRE(a.status == 201);
    return json::parse(a.body);
  }
  std::string names(const std::string& query) {
    std::string all;
    const auto list = json::parse(ask("GET", pods + "?" + query).body);
    for (const auto& each : kube::items(list, {"items"}))
      all += kube::text(each, {"metadata", "name"}) + " ";
    return all;
  }
  std::string lines(std::uint64_t watch) {
    std::string all;
    while (const auto line = server.line(watch)) {
      const auto event = json::parse(*line);
      all += kube::text(event, {"type"}) + " " + kube::text(event, {"object", "metadata", "name"}) +
             ";";
    }
    return all;
  }
  std::string version() {
    return kube::text(json::parse(ask("GET", pods).body), {"metadata", "resourceVersion"});
  }
};

} // namespace

TEST_CASE("patches") {
  auto object = json::parse(R"({"a":{"b":1,"c":[1,2]},"d/e":0})");
  merge_patch(object, json::parse(R"({"a":{"b":null,"c":[3]},"f":{"g":null}})"));
  CHECK(object == json::parse(R"({"a":{"c":[3]},"d/e":0,"f":{}})"));
  CHECK(!json_patch(object, json::parse(R"([{"op":"test","path":"/a/c/0","value":3},
                                            {"op":"add","path":"/a/c/-","value":4},
                                            {"op":"add","path":"/a/c/0","value":2},
                                            {"op":"replace","path":"/d~1e","value":1},
                                            {"op":"remove","path":"/f"}])")));
  CHECK(object == json::parse(R"({"a":{"c":[2,3,4]},"d/e":1})"));
  const auto before = object;
  for (const char* bad : {R"([{"op":"remove","path":"/a"},{"op":"test","path":"/d~1e","value":2}])",
                          R"([{"op":"replace","path":"/x","value":2}])",
                          R"([{"op":"add","path":"/a/c/9","value":2}])", R"([{"op":"add"}])",
                          R"([{"op":"move","path":"/a","value":1}])", "{}"}) {
    CHECK(json_patch(object, json::parse(bad)));
    CHECK(object == before);
  }
}

TEST_CASE("what is made is there, once") {
  client c;
  const auto made = c.make("a", R"(,"labels":{"x":"1"})");
  CHECK(kube::text(made, {"metadata", "uid"}) == "uid-1");
  CHECK(kube::text(made, {"metadata", "creationTimestamp"}) == "2026-01-01T00:00:00Z");
  CHECK(kube::text(made, {"status", "phase"}) == "Pending");
  CHECK(c.ask("POST", pods, R"({"metadata":{"name":"a"}})").status == 409);
  CHECK(c.ask("POST", pods, R"({"metadata":{"name":"A b"}})").status == 422);
  CHECK(c.ask("POST", pods, R"({"metadata":{}})").status == 422);
  CHECK(c.ask("POST", pods, R"({"metadata":{"name":"b","labels":{"x":"-"}}})").status == 422);
  CHECK(c.ask("POST", pods, R"({"metadata":{"name":"b","namespace":"other"}})").status == 400);
  CHECK(c.ask("POST", pods, R"({"metadata":{"generateName":"g-"}})").status == 201);
  CHECK(json::parse(c.ask("GET", pods + "/a").body) == made);
  CHECK(c.ask("GET", pods + "/none").status == 404);
  CHECK(c.server.counts["create pods"] == 7);
}

TEST_CASE("lists have selectors and pages") {
  client c;
  for (const char* name : {"a", "b", "c"})
    c.make(name, R"(,"labels":{"x":"1","y":")" + std::string(name) + "\"}");
  c.make("d");
  CHECK(c.names("") == "a b c d ");
  CHECK(c.names("labelSelector=x%3D1%2Cy%3Db") == "b ");
  CHECK(c.names("labelSelector=x%3D%3D1") == "a b c ");
  CHECK(c.names("fieldSelector=metadata.name%3Dd") == "d ");
  const auto first = json::parse(c.ask("GET", pods + "?limit=3").body);
  const auto next = kube::text(first, {"metadata", "continue"});
  c.make("e"); // not in the pages, which are of one moment
  CHECK(kube::items(first, {"items"}).size() == 3);
  CHECK(c.names("limit=3&continue=" + next) == "d ");
  CHECK(c.ask("GET", pods + "?continue=unknown").status == 410);
  CHECK(c.server.all("/api/v1/pods").size() == 5);
}

TEST_CASE("changes: of one version, of the status, or of all else") {
  client c;
  auto pod = c.make("a");
  metadata_of(pod)["labels"] = json::object{{"x", "1"}};
  pod.as_object()["status"] = json::object{{"phase", "Running"}};
  CHECK(c.ask("PUT", pods + "/a", json::serialize(pod)).status == 200);
  CHECK(c.ask("PUT", pods + "/a", json::serialize(pod)).status == 409); // its version is old
  CHECK(kube::label(*c.server.find(pods + "/a"), "x") == "1");
  CHECK(kube::text(*c.server.find(pods + "/a"), {"status", "phase"}) == "Pending");

  const auto merge = "application/merge-patch+json";
  const auto change = R"({"status":{"phase":"Failed"},"metadata":{"labels":{"x":"2"},"uid":"u"}})";
  CHECK(c.ask("PATCH", pods + "/a/status", change, merge).status == 200);
  CHECK(kube::text(*c.server.find(pods + "/a"), {"status", "phase"}) == "Failed");
  CHECK(kube::label(*c.server.find(pods + "/a"), "x") == "1");
  CHECK(c.ask("PATCH", pods + "/a", change, merge).status == 200);
  CHECK(kube::label(*c.server.find(pods + "/a"), "x") == "2");
  CHECK(kube::text(*c.server.find(pods + "/a"), {"metadata", "uid"}) == "uid-1");

  const auto version = c.version();
  CHECK(c.ask("PATCH", pods + "/a", change, merge).status == 200);
  CHECK(c.version() == version); // nothing was different
  CHECK(c.ask("PATCH", pods + "/a", R"([{"op":"test","path":"/metadata/uid","value":"u"}])",
              "application/json-patch+json")
            .status == 422);
  CHECK(c.ask("PATCH", pods + "/a", "{}", "text/plain").status == 415);
}

TEST_CASE("server-side apply makes and merges") {
  client c;
  const auto type = "application/apply-patch+yaml";
  const auto at = jobs + "/j?fieldManager=test&force=true";
  CHECK(c.ask("PATCH", jobs + "/j", "{}", type).status == 400);
  CHECK(c.ask("PATCH", at, R"({"spec":{"a":1,"list":[1]}})", type).status == 201);
  CHECK(c.ask("PATCH", at, R"({"spec":{"b":2,"list":[2]}})", type).status == 200);
  const auto job = *c.server.find(jobs + "/j");
  CHECK(*kube::member(job, {"spec"}) == json::parse(R"({"a":1,"b":2,"list":[2]})"));
  CHECK(kube::number(job, {"metadata", "generation"}) == 2);
}

TEST_CASE("pods that run have a grace, others go at once") {
  client c;
  simulated_kubelet kubelet(c.server, "jobs");
  c.make("waits");
  c.make("runs");
  kubelet.bind("runs", "machine-1");
  kubelet.run("runs", "10.0.0.1");
  CHECK(c.ask("DELETE", pods + "/runs", R"({"preconditions":{"uid":"other"}})").status == 409);
  CHECK(c.ask("DELETE", pods + "/waits").status == 200);
  CHECK(c.ask("DELETE", pods + "/runs", R"({"preconditions":{"uid":"uid-2"}})").status == 200);
  CHECK(c.names("") == "runs ");
  CHECK(is_deleted(*c.server.find(pods + "/runs")));
  CHECK(c.ask("DELETE", pods + "/runs", R"({"gracePeriodSeconds":0})").status == 200);
  CHECK(c.names("") == "");
  CHECK(c.ask("DELETE", pods + "/runs").status == 404);
}

TEST_CASE("owners, dependents and finalizers") {
  client c;
  const auto owned = R"(,"ownerReferences":[{"uid":"uid-1"}])";
  const auto make_job = [&](const std::string& more) {
    return c.ask("POST", jobs, R"({"metadata":{"name":"j")" + more + "}}").status;
  };
  REQUIRE(make_job("") == 201);
  c.make("a", owned);
  CHECK(c.ask("DELETE", jobs + "/j").status == 200);
  CHECK(c.names("") == "");

  client orphaning;
  REQUIRE(orphaning.ask("POST", jobs, R"({"metadata":{"name":"j"}})").status == 201);
  orphaning.make("a", owned);
  CHECK(orphaning.ask("DELETE", jobs + "/j?propagationPolicy=Orphan").status == 200);
  CHECK(orphaning.names("") == "a ");

  client waiting;
  simulated_kubelet kubelet(waiting.server, "jobs");
  REQUIRE(waiting.ask("POST", jobs, R"({"metadata":{"name":"j"}})").status == 201);
  waiting.make("a", owned);
  kubelet.bind("a", "machine-1");
  CHECK(waiting.ask("DELETE", jobs + "/j", R"({"propagationPolicy":"Foreground"})").status == 200);
  CHECK(is_deleted(*waiting.server.find(jobs + "/j")));
  CHECK(is_deleted(*waiting.server.find(pods + "/a")));
  kubelet.terminated("a");
  CHECK(waiting.server.find(jobs + "/j") == nullptr);

  client held;
  REQUIRE(held.ask("POST", jobs, R"({"metadata":{"name":"j","finalizers":["x"]}})").status == 201);
  CHECK(held.ask("DELETE", jobs + "/j").status == 200);
  REQUIRE(held.server.find(jobs + "/j") != nullptr);
  CHECK(held.ask("PATCH", jobs + "/j", R"({"metadata":{"finalizers":null}})",
                 "application/merge-patch+json")
            .status == 200);
  CHECK(held.server.find(jobs + "/j") == nullptr);
}

TEST_CASE("watches tell what their selector selects, from where they began") {
  client c;
  const auto from = c.version();
  c.make("a", R"(,"labels":{"x":"1"})");
  c.make("b");
  const auto w = c.server.watch({"GET",
                                 pods +
                                     "?watch=1&allowWatchBookmarks=true&labelSelector=x%3D1"
                                     "&resourceVersion=" +
                                     from,
                                 "", ""});
  REQUIRE(w.answer.status == 200);
  CHECK(c.lines(w.watch) == "ADDED a;");
  const auto relabel = [&](const char* value) {
    c.server.change(pods + "/b", [&](json::object& pod) {
      pod["metadata"].as_object()["labels"] = json::object{{"x", value}};
    });
  };
  relabel("1");
  relabel("2");
  c.ask("DELETE", pods + "/a");
  c.server.bookmark();
  CHECK(c.lines(w.watch) == "ADDED b;DELETED b;DELETED a;BOOKMARK ;");
  CHECK(c.server.is_open(w.watch));
  c.server.end_watches();
  CHECK(!c.server.is_open(w.watch));

  const auto anew = c.server.watch({"GET", pods + "?watch=1", "", ""});
  CHECK(c.lines(anew.watch) == "ADDED b;");
}

TEST_CASE("a history is bounded") {
  client c;
  c.server.history_max = 3;
  const auto from = c.version();
  for (const char* name : {"a", "b", "c", "d"})
    c.make(name);
  bool before = false, in_it = false;
  for (int n = 0; n < 30; ++n) {
    const auto w = c.server.watch({"GET", pods + "?watch=1&resourceVersion=" + from, "", ""});
    before = before || w.answer.status == 410;
    in_it = in_it ||
            (w.answer.status == 200 && c.lines(w.watch) == "ERROR ;" && !c.server.is_open(w.watch));
  }
  CHECK(before);
  CHECK(in_it);
  const auto now = c.version();
  CHECK(c.server.watch({"GET", pods + "?watch=1&resourceVersion=" + now, "", ""}).answer.status ==
        200);
}

TEST_CASE("faults: with the effect and without it") {
  client c;
  c.server.wrong.unheard = 1;
  CHECK(c.ask("POST", pods, R"({"metadata":{"name":"a"}})").status == 0);
  c.server.wrong = {};
  CHECK(c.names("") == "");
  c.server.wrong.unanswered = 1;
  CHECK(c.ask("POST", pods, R"({"metadata":{"name":"a"}})").status == 0);
  c.server.wrong = {};
  CHECK(c.names("") == "a ");
  c.server.wrong.too_many = 1;
  CHECK(c.ask("GET", pods + "/a").retry_after.has_value());
  c.server.wrong = {};
  c.server.wrong.conflict = 1;
  CHECK(c.ask("DELETE", pods + "/a").status == 409);
  CHECK(c.ask("GET", pods + "/a").status == 200);
  c.server.wrong = {};
  c.server.forbidden.insert({"get", "pods"});
  CHECK(c.ask("GET", pods + "/a").status == 403);
}

TEST_CASE("events late and twice") {
  client c;
  c.server.wrong.event_late = 1;
  c.server.wrong.event_twice = 1;
  const auto w = c.server.watch({"GET", pods + "?watch=1&resourceVersion=" + c.version(), "", ""});
  c.make("a");
  c.make("b");
  CHECK(c.lines(w.watch) == "");
  CHECK(*c.server.next_line() > instant{});
  c.server.advance(instant{} + 20s);
  CHECK(c.lines(w.watch) == "ADDED a;ADDED a;ADDED b;ADDED b;");
  CHECK(!c.server.next_line());
}
