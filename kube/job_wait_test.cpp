#include "kube/job_wait.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

using namespace troupe;
using namespace troupe::kube;

namespace {

constexpr instant t0{100s};
constexpr auto absent =
    R"({"kind":"Status","reason":"NotFound","details":{"name":"words"},"code":404})";

struct waiting {
  job_wait of{"training", "words", t0 + 60s};

  job_wait::heard hears(const std::string& phase, instant at = t0, const std::string& uid = "u") {
    return of.answered(
        at, {200,
             fmt::format(
                 R"({{"metadata":{{"uid":"{}"}},"status":{{"phase":"{}","status":{{"conditions":[
                         {{"type":"{}","status":"True","reason":"Why","message":"so"}}]}}}}}})",
                 uid, phase, phase),
             std::nullopt, false});
  }
  job_wait::heard hears(unsigned status, const std::string& body, instant at = t0) {
    return of.answered(at, {status, body, std::nullopt, false});
  }
};

std::string wrong(const job_wait::heard& h) {
  REQUIRE(h.over);
  REQUIRE(!*h.over);
  return h.over->error().what;
}

} // namespace

TEST_SUITE("a wait for a job's end") {
  TEST_CASE("each phase is told once, and the end ends it") {
    waiting w;
    CHECK(w.of.request().target ==
          "/apis/elastic.iml.github.io/v1alpha1/namespaces/training/elasticjobs/words");
    auto h = w.hears("Pending");
    CHECK(!h.over);
    CHECK(h.note->text == "ElasticJob training/words is Pending");
    h = w.hears("Pending");
    CHECK(!h.note);
    CHECK(w.hears("Running").note->text == "ElasticJob training/words is Running");
    h = w.hears("Succeeded");
    REQUIRE(h.over);
    CHECK(h.over->has_value());
  }

  TEST_CASE("a job that fails says why") {
    waiting w;
    CHECK(wrong(w.hears("Failed")) == "ElasticJob training/words has failed: Why: so");
  }

  TEST_CASE("one that is not there, goes, or is another one, is not waited for") {
    waiting w;
    CHECK(wrong(w.hears(404, absent)) == "ElasticJob training/words: there is no such job");
    w.hears("Running");
    CHECK(wrong(w.hears(404, absent)) == "ElasticJob training/words was deleted before its end");
    CHECK(wrong(w.hears("Succeeded", t0, "v")) ==
          "ElasticJob training/words was deleted before its end, and another job has its name");
  }

  TEST_CASE("a server that knows no ElasticJobs yet is asked again") {
    waiting w;
    CHECK(!w.hears(404, "404 page not found").over);
    CHECK(!w.hears(404, R"({"kind":"Status","reason":"NotFound","details":{}})").over);
    CHECK(w.of.late().what == "ElasticJob training/words is not over in time: status 404");
    CHECK(waiting().of.late().what.find("nothing was answered") != std::string::npos);
  }

  TEST_CASE("what may pass is told when the time is over") {
    waiting w;
    const std::string no = R"({"kind":"Status","message":"elasticjobs is forbidden"})";
    CHECK(!w.hears(403, no).over);
    CHECK(!w.hears(0, "refused", t0 + 59s).over);
    CHECK(!w.hears(200, "<html>", t0 + 59s).over);
    CHECK(wrong(w.hears(403, no, t0 + 60s)) == "ElasticJob training/words is not over in time: "
                                               "elasticjobs is forbidden (status 403)");
    CHECK(wrong(w.hears("Pending", t0 + 60s)) ==
          "ElasticJob training/words is not over in time: it is Pending: Why: so");
    CHECK(wrong(w.hears("", t0 + 60s)).find("no operator has told its state") != std::string::npos);
  }
}
