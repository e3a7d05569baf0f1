#include "launch/doctor/meeting.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::launch;
using namespace troupe::launch::doctor;

namespace {

using hosting = placement::hosting;

endpoint_facts at(const std::string& host, hosting who, bool ours) {
  endpoint_facts seen;
  seen.nodes = 2;
  seen.where = {who, {host, 29'400}};
  seen.from = "--rdzv-endpoint";
  seen.patience = 60s;
  seen.ours = ours;
  seen.outgoing_from = 32'768;
  seen.outgoing_to = 60'999;
  return seen;
}

bool mentions(const std::string& text, const std::string& word) {
  return text.find(word) != std::string::npos;
}

} // namespace

TEST_SUITE("doctor: meeting") {
  TEST_CASE("this machine's own name") {
    struct row {
      host_facts seen;
      grade expected;
    };
    for (const auto& r :
         {row{{1, "n", "", true, true}, grade::ok}, row{{2, "n", "", true, false}, grade::ok},
          row{{2, "n", "", true, true}, grade::warning},
          row{{1, "n", "Name or service not known", false, false}, grade::note},
          row{{2, "n", "Name or service not known", false, false}, grade::warning},
          row{{2, "n", "", false, false}, grade::warning}}) {
      const auto f = judge(r.seen);
      CAPTURE(f.found);
      CHECK(f.how == r.expected);
      CHECK(f.remedy.empty() == (r.expected == grade::ok));
    }
  }

  TEST_CASE("a job that is alone on its node needs no endpoint, but perhaps a port") {
    endpoint_facts seen;
    seen.where = {hosting::here, {"127.0.0.1", 0}};
    CHECK(judge(seen).size() == 1);
    seen.where.store_port = 29'500;
    CHECK(judge(seen).at(1).how == grade::ok);
    seen.cannot_listen = "the port is in use by another program";
    seen.owner = {77, "nginx"};
    CHECK(judge(seen).at(1).how == grade::error);
    CHECK(mentions(judge(seen).at(1).found, "nginx (pid 77)"));
  }

  TEST_CASE("a name that is not resolved stops the job, and nothing else is said") {
    auto seen = at("nohost", hosting::if_able, false);
    seen.unresolved = "Name or service not known";
    const auto all = judge(seen);
    REQUIRE(all.size() == 1);
    CHECK(all[0].how == grade::error);
    CHECK(mentions(all[0].found, "nohost:29400 (--rdzv-endpoint)"));
    CHECK(mentions(all[0].costs, "60.0 s"));
  }

  TEST_CASE("loopback is no place for several machines to meet") {
    auto seen = at("127.0.0.1", hosting::if_able, true);
    seen.loopback = true;
    CHECK(judge(seen).at(0).how == grade::warning);
    seen.nodes = 1;
    CHECK(judge(seen).at(0).how == grade::ok);
  }

  TEST_CASE("the master's port on this machine: free, free for now, taken") {
    auto seen = at("host0", hosting::if_able, true);
    CHECK(judge(seen).at(1).found == "29400 is free");
    seen.where.master.port = 40'000;
    CHECK(judge(seen).at(1).how == grade::note);
    seen.outgoing_avoids_it = true;
    CHECK(judge(seen).at(1).how == grade::ok);

    seen.cannot_listen = "cannot listen on host0:40000: the port is in use by another program";
    seen.cannot_connect = "";
    seen.no_master = "it speaks HTTP";
    seen.owner = {77, "nginx"};
    CHECK(judge(seen).at(1).how == grade::error);
    CHECK(judge(seen).at(1).found == "nginx (pid 77) listens there: it speaks HTTP");
    seen.owner = std::nullopt;
    CHECK(mentions(judge(seen).at(1).found, "may not look at"));
  }

  TEST_CASE("a master that is there already is joined by launchers that may, and only by those") {
    auto seen = at("host0", hosting::if_able, true);
    seen.cannot_listen = "in use";
    seen.cannot_connect = "";
    seen.no_master = "";
    seen.job = "nightly";
    seen.owner = {77, "troupe-node"};
    CHECK(judge(seen).at(1).how == grade::ok);
    CHECK(mentions(judge(seen).at(1).found, "'nightly'"));
    seen.where.host = hosting::here;
    CHECK(judge(seen).at(1).how == grade::error);
    seen.where.host = hosting::elsewhere;
    CHECK(judge(seen).at(1).how == grade::ok);
  }

  TEST_CASE("an address of no machine here, at which this launcher is to run the master") {
    auto seen = at("10.9.9.9", hosting::here, false);
    seen.cannot_listen = "cannot listen on 10.9.9.9:29400: Cannot assign requested address";
    seen.cannot_connect = "no answer in time";
    CHECK(mentions(judge(seen).at(0).found, "no address of this machine"));
    CHECK(judge(seen).at(1).how == grade::error);
  }

  TEST_CASE("a master elsewhere: not there yet, out of reach, another program, there") {
    auto seen = at("host0", hosting::elsewhere, false);
    CHECK(judge(seen).size() == 1);
    seen.cannot_connect = "Connection refused";
    CHECK(judge(seen).at(1).how == grade::note);
    seen.cannot_connect = "no answer in time";
    CHECK(judge(seen).at(1).how == grade::warning);
    seen.cannot_connect = "";
    seen.no_master = "its job token is another one than ours";
    CHECK(judge(seen).at(1).how == grade::warning);
    CHECK(mentions(judge(seen).at(1).found, "another one than ours"));
    seen.no_master = "";
    CHECK(judge(seen).at(1).how == grade::ok);
  }
}
