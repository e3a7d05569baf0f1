#include "kube/machine_marks_core.hpp"

#include "kube/limits.hpp"
#include "tests/kube/simulated_machines.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <doctest/doctest.h>

#include <functional>

using namespace troupe;
using namespace troupe::kube;
namespace json = boost::json;
using testing::simulated_machines;

namespace {

struct marking {
  simulated_machines cluster;
  machine_marks_core core;
  instant now{};
  std::vector<log::event> told;
  /// Instead of the cluster's answer, if it gives one.
  std::function<std::optional<api_answer>(const api_request&)> instead;

  explicit marking(machine_mark how = machine_mark::taint)
      : core({"jobs", "master-0", "words of 2026", how, 1}) {
    cluster.pods = {{"10.0.0.7", "machine-7"}, {"10.0.0.8", "machine-8"}};
    cluster.machines["machine-7"];
    cluster.machines["machine-8"];
  }

  void perform(const machine_marks_core::effects& effects) {
    for (const auto& e : effects)
      if (const auto* n = std::get_if<machine_marks_core::note>(&e)) {
        told.push_back(n->event);
      } else {
        const auto& c = std::get<machine_marks_core::call>(e);
        const auto other = instead ? instead(c.what) : std::nullopt;
        const auto answer = other ? *other : cluster.answer(c.what);
        perform(core.answered(now, c.number, answer));
      }
  }
  void mark(const std::string& node, const std::string& address) {
    perform(core.mark_faulty(now, node, address, "its link is broken"));
  }
  /// Until nothing is left to do.
  void settle() {
    while (const auto at = core.next_wakeup()) {
      REQUIRE(*at > now);
      now = *at;
      perform(core.tick(now));
    }
  }
  json::value taints(const std::string& machine) { return cluster.machines.at(machine).taints; }
};

const auto our_taint =
    json::parse(R"([{"key":"troupe/faulty","value":"words-of-2026","effect":"NoSchedule"}])");

} // namespace

TEST_CASE("the machine under a node gets a taint") {
  marking m;
  m.mark("node-0", "10.0.0.7");
  CHECK(m.taints("machine-7") == our_taint);
  CHECK(m.taints("machine-8").is_null());
  REQUIRE(m.told.size() == 1);
  CHECK(m.told[0].name == "machine_marked");
  CHECK(m.told[0].text == "the machine machine-7 of node node-0 is marked as faulty (its link is "
                          "broken), so that nothing is scheduled there; once it is mended: kubectl "
                          "taint nodes machine-7 troupe/faulty-");
}

TEST_CASE("or a cordon") {
  marking m(machine_mark::cordon);
  m.mark("node-0", "10.0.0.7");
  CHECK(m.cluster.machines.at("machine-7").unschedulable);
  CHECK(m.taints("machine-7").is_null());
  CHECK(m.told.at(0).text.find("kubectl uncordon machine-7") != std::string::npos);
}

TEST_CASE("taints of others stay, and a mark that is there already is enough") {
  marking m;
  const auto others = json::parse(R"([{"key":"other","effect":"NoExecute"},
                                      {"key":"troupe/faulty","effect":"PreferNoSchedule"}])");
  m.cluster.machines["machine-7"].taints = others;
  m.mark("node-0", "10.0.0.7");
  REQUIRE(m.taints("machine-7").as_array().size() == 3);
  CHECK(m.taints("machine-7").at(0) == others.at(0));
  CHECK(m.taints("machine-7").at(1) == others.at(1));
  CHECK(m.taints("machine-7").at(2) == our_taint.at(0));
  m.mark("node-0", "10.0.0.7");
  CHECK(m.taints("machine-7").as_array().size() == 3);
  CHECK(m.told.size() == 2);
}

TEST_CASE("a list that is empty, or null") {
  for (const char* none : {"[]", "null"}) {
    marking m;
    m.cluster.machines["machine-7"].taints = json::parse(none);
    m.mark("node-0", "10.0.0.7");
    CHECK(m.taints("machine-7") == our_taint);
  }
}

TEST_CASE("another change between reading and writing loses nothing") {
  for (const unsigned status : {409u, 422u}) {
    marking m;
    m.cluster.failed_test = status;
    int others = 3;
    m.instead = [&](const api_request& r) -> std::optional<api_answer> {
      if (r.method == "PATCH" && others-- > 0) {
        auto& machine = m.cluster.machines.at("machine-7");
        ++machine.version;
        if (machine.taints.is_null())
          machine.taints = json::array();
        machine.taints.as_array().push_back(json::object{{"key", std::to_string(others)}});
      }
      return std::nullopt;
    };
    m.mark("node-0", "10.0.0.7");
    m.settle();
    CHECK(m.taints("machine-7").as_array().size() == 4);
    CHECK(m.taints("machine-7").at(3) == our_taint.at(0));
  }
}

TEST_CASE("an API server that is away, or wants to be left alone") {
  for (const auto& trouble :
       {api_answer{0, "connection refused", {}}, api_answer{503, "", {}}, api_answer{401, "", {}},
        api_answer{429, "", std::optional<duration>(20s)}}) {
    marking m;
    m.instead = [&](const api_request&) -> std::optional<api_answer> {
      return m.now < instant{} + 30s ? std::optional(trouble) : std::nullopt;
    };
    m.mark("node-0", "10.0.0.7");
    if (trouble.retry_after)
      CHECK(m.core.next_wakeup() >= instant{} + 20s);
    m.settle();
    CHECK(m.taints("machine-7") == our_taint);
    CHECK(m.told.size() == 1);
  }
}

TEST_CASE("one that never comes back is told, with the command to do it by hand") {
  marking m;
  int asked = 0;
  m.instead = [&](const api_request&) -> std::optional<api_answer> {
    ++asked;
    return api_answer{0, "connection refused", {}};
  };
  m.mark("node-0", "10.0.0.7");
  m.settle();
  CHECK(asked == limits::mark_attempts_max);
  REQUIRE(m.told.size() == 1);
  CHECK(m.told[0].severity == log::level::warning);
  CHECK(m.told[0].name == "machine_not_marked");
  CHECK(m.told[0].text.find("connection refused, 12 times") != std::string::npos);
  CHECK(m.told[0].text.find("kubectl taint nodes MACHINE troupe/faulty=words-of-2026:NoSchedule") !=
        std::string::npos);
}

TEST_CASE("a role that lacks something is told at once, and the next machine is marked") {
  marking m;
  m.instead = [](const api_request& r) -> std::optional<api_answer> {
    if (r.method == "PATCH" && r.target == "/api/v1/nodes/machine-7")
      return api_answer{
          403, R"({"message":"nodes \"machine-7\" is forbidden: cannot patch nodes"})", {}};
    return std::nullopt;
  };
  m.mark("node-0", "10.0.0.7");
  m.mark("node-1", "10.0.0.8");
  REQUIRE(m.told.size() == 2);
  CHECK(m.told[0].text.find("cannot patch nodes (status 403)") != std::string::npos);
  CHECK(m.told[0].text.find("kubectl taint nodes machine-7 ") != std::string::npos);
  CHECK(m.taints("machine-8") == our_taint);
}

TEST_CASE("addresses that pods have had before") {
  marking m;
  m.cluster.pods = {{"10.0.0.7", "", "Pending", ""},
                    {"10.0.0.7", "machine-1", "Failed", "2026-01-01T00:00:00Z"},
                    {"10.0.0.7", "machine-7", "Running", "2026-01-01T00:00:00Z"},
                    {"10.0.0.7", "machine-2", "Succeeded", "2026-01-02T00:00:00Z"}};
  m.mark("node-0", "10.0.0.7");
  CHECK(m.taints("machine-7") == our_taint);

  // One that has just ended for what is wrong with the machine.
  marking ended;
  ended.cluster.pods = {{"10.0.0.7", "machine-1", "Failed", "2026-01-01T00:00:00Z"},
                        {"10.0.0.7", "machine-7", "Failed", "2026-01-02T00:00:00Z"}};
  ended.mark("node-0", "10.0.0.7");
  CHECK(ended.taints("machine-7") == our_taint);
}

TEST_CASE("a node in the master's own pod") {
  for (const char* address : {"127.0.0.1", "::1", "localhost"}) {
    marking m;
    m.cluster.pods.push_back({"10.0.0.1", "machine-8"});
    m.cluster.pods.back().name = "master-0";
    m.mark("node-0", address);
    CHECK(m.taints("machine-8") == our_taint);
  }
}

TEST_CASE("a node whose address is not known is none of the pods that have no address") {
  marking m;
  m.cluster.pods = {{"", "machine-7", "Pending"}};
  m.mark("node-0", "");
  CHECK(m.taints("machine-7").is_null());
  REQUIRE(m.told.size() == 1);
  CHECK(m.told[0].name == "machine_not_marked");
  CHECK(m.cluster.asked.empty());
}

TEST_CASE("no pod, no machine, no JSON") {
  marking m;
  m.mark("node-9", "10.0.0.9");
  CHECK(m.told.at(0).text.find("no pod of namespace jobs has the address 10.0.0.9") !=
        std::string::npos);
  m.cluster.machines.erase("machine-7");
  m.mark("node-0", "10.0.0.7");
  CHECK(m.told.at(1).text.find("nodes \"machine-7\" not found (status 404)") != std::string::npos);
  for (const char* body : {"", "<html>", "[]", "{\"items\":{}}", "{\"items\":[7,{\"spec\":[]}]}"}) {
    marking odd;
    odd.instead = [&](const api_request&) -> std::optional<api_answer> {
      return api_answer{200, body, {}};
    };
    odd.mark("node-0", "10.0.0.7");
    CHECK(odd.told.at(0).name == "machine_not_marked");
  }
}

TEST_CASE("answers that are late or come twice mean nothing") {
  marking m;
  const auto first = m.core.mark_faulty(m.now, "node-0", "10.0.0.7", "broken");
  const auto& call = std::get<machine_marks_core::call>(first.at(0));
  const auto answer = m.cluster.answer(call.what);
  m.perform(m.core.answered(m.now, call.number, answer));
  CHECK(m.taints("machine-7") == our_taint);
  CHECK(m.core.answered(m.now, call.number, answer).empty());
  CHECK(m.core.answered(m.now, 99, answer).empty());
  CHECK(m.core.tick(m.now + 1h).empty());
}

TEST_CASE("a master that ends tells what is left unmarked") {
  marking m;
  m.instead = [](const api_request&) -> std::optional<api_answer> {
    return api_answer{0, "connection refused", {}};
  };
  m.mark("node-0", "10.0.0.7");
  m.mark("node-1", "10.0.0.8");
  m.perform(m.core.ended());
  REQUIRE(m.told.size() == 2);
  CHECK(m.told[0].text.find("the master has ended; connection refused") != std::string::npos);
  CHECK(m.told[1].text.find("the master has ended before") != std::string::npos);
  CHECK(!m.core.is_busy());
  CHECK(!m.core.next_wakeup());
}

TEST_CASE("a node that waits is not marked twice, and not too many wait") {
  marking m;
  m.core.mark_faulty(m.now, "node-0", "10.0.0.7", "broken"); // never answered
  CHECK(m.core.mark_faulty(m.now, "node-0", "10.0.0.7", "broken").empty());
  for (std::size_t n = 1; n < limits::marks_waiting_max; ++n)
    CHECK(m.core.mark_faulty(m.now, "node-" + std::to_string(n), "10.0.0.8", "broken").empty());
  const auto over = m.core.mark_faulty(m.now, "one-more", "10.0.0.8", "broken");
  REQUIRE(over.size() == 1);
  CHECK(std::get<machine_marks_core::note>(over[0]).event.text.find("one-more") !=
        std::string::npos);
}
