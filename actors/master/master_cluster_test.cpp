#include "tests/actors/master_stage.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

/// Writes down what it is told, and gives another machine for each node.
struct giving_cluster final : ports::cluster {
  void listen(listener l) override { by = std::move(l); }
  bool replaces() const override { return true; }
  void mark_faulty(const node_name& node, const std::string&, const std::string&) override {
    told.push_back("marked " + node);
  }
  void node_lost(const node_name& node, const std::string&, const std::string&) override {
    told.push_back("lost " + node);
  }
  void replace(const node_name& node, const std::string& address, bool is_broken,
               const std::string&) override {
    told.push_back("replace " + node + " at " + address + (is_broken ? ", broken" : ""));
  }
  void want(std::uint32_t nodes) override { told.push_back("want " + std::to_string(nodes)); }
  void end() override {}

  listener by;
  std::vector<std::string> told;
};

using words = std::vector<std::string>;

/// A job of two nodes in a cluster; each may fail once.
struct given_job : master_stage {
  given_job() : master_stage(2, 1) {
    cluster = below;
    begin();
    join("a");
    join("b");
    run_two();
    below->told.clear();
  }
  std::shared_ptr<giving_cluster> below = std::make_shared<giving_cluster>();
};

} // namespace

TEST_SUITE("master: the cluster below a job") {
  TEST_CASE("hears which node leaves, and what has broken hardware is marked first") {
    given_job s;
    s.says("b", failed("b", 1, {201}).any());
    s.stop_two();
    CHECK(s.below->told == words{"marked b", "replace b at b.lan, broken"});
  }

  TEST_CASE("scales the job, and hears when that is on record") {
    given_job s;
    s.journal_is_slow = true;
    std::optional<std::pair<bool, std::string>> done;
    const ports::cluster::sizes wish{1, 4, "uid-1", [&](bool accepted, const std::string& why) {
                                       done = {accepted, why};
                                     }};
    s.below->by.scale(wish);
    s.settle();
    CHECK_FALSE(done);
    s.journal_answers();
    REQUIRE(done);
    CHECK(done->first);
    CHECK(s.journalled().find("SizesChanged 1:4, plan uid-1") != std::string::npos);
    CHECK(s.below->told == words{"want 4"});
    done.reset();
    s.below->by.scale(wish);
    s.settle();
    REQUIRE(done);
    CHECK(*done == std::pair<bool, std::string>{true, "that plan was done before"});
  }

  TEST_CASE("that gives no further node ends a job that has too few") {
    given_job s;
    s.below->by.supplied({2, 1, "rank 1 gets no further pod", ""});
    s.settle();
    CHECK(s.verdicts.empty());
    s.says("b", messages::author("b").write<messages::Goodbye>({}, [](auto) {}).any());
    s.says("a", stopped("a", 1).any());
    REQUIRE(s.verdicts.size() == 1);
    CHECK(s.verdicts[0].reason.find("and rank 1 gets no further pod") != std::string::npos);
  }
}
