#include "diag/progress/page.hpp"
#include "diag/stacks/merged_message.hpp"
#include "tests/actors/master_stage.hpp"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

/// Keeps what it is to write until the test has it written.
struct slow_archive : diag::stacks_archive {
  std::uint64_t first = 1;
  std::vector<diag::stacks_to_write> given;
  std::vector<std::function<void(diag::stacks_written)>> waiting;

  std::uint64_t free_number() override {
    auto next = first;
    for (const auto& g : given)
      next = std::max(next, g.dump + 1);
    return next;
  }
  void write(diag::stacks_to_write what, std::function<void(diag::stacks_written)> done) override {
    given.push_back(std::move(what));
    waiting.push_back(std::move(done));
  }
  void writes_all() {
    for (std::size_t i = 0; i < waiting.size(); ++i)
      if (auto done = std::exchange(waiting[i], nullptr)) {
        diag::merged_stacks shown;
        shown.world_size = 4;
        done({"/run/stacks/" + std::to_string(given[i].dump), "",
              static_cast<std::uint32_t>(2 * given[i].of.size()), 4,
              std::make_shared<const diag::merged_stacks>(std::move(shown))});
      }
  }
};

/// Ranks 0 to 3 at two nodes; one of them may be stopped.
messages::msg<messages::ProgressReport> progress(const node_name& node, std::uint32_t first,
                                                 std::uint64_t g, int stopped) {
  return messages::author(node).write<messages::ProgressReport>(generation{g}, [&](auto b) {
    b.setNode(node);
    b.setSuspect(stopped >= 0);
    b.setAnswers(UINT64_MAX); // whatever was asked
    auto ranks = b.initRanks(2);
    for (unsigned i = 0; i < 2; ++i) {
      const bool stands = static_cast<int>(first + i) == stopped;
      ranks[i].setRank(first + i);
      ranks[i].setLocalRank(i);
      ranks[i].setPid(static_cast<std::int32_t>(100 + first + i));
      ranks[i].setFeeds(static_cast<std::uint64_t>(diag::feed::collectives) |
                        static_cast<std::uint64_t>(diag::feed::collective_ends));
      ranks[i].setIdleMs(stopped >= 0 ? 2'000 : 10);
      ranks[i].setLimitMs(1'200);
      ranks[i].setRanForMs(100'000);
      ranks[i].setSteps(100);
      auto group = ranks[i].initCommunicators(1);
      group[0].setName("0");
      group[0].setMembers(4);
      group[0].setEntered(stands ? 9 : 10);
      group[0].setLeft(9);
      group[0].setKind(static_cast<std::uint8_t>(diag::collective::all_reduce));
      if (stopped < 0)
        continue;
      ranks[i].setState(stands ? 'T' : 'S');
      ranks[i].setMotion(2);
    }
  });
}

struct looked_into : master_stage {
  looked_into() : master_stage(2) {
    options.diagnosis.stacks = archive;
    options.diagnosis.policy.action = hang_action::notify;
    options.diagnosis.notify = [this](const diagnosis::finding& f) {
      notified.push_back(f.stacks);
    };
  }
  void run() {
    begin();
    join("a");
    join("b");
    run_two();
  }

  troupe::testing::fake_link_ptr new_shell() {
    auto link = transport->knock(
        hello("shell", 1, [](auto b) { b.setRole(messages::Hello::Role::SHELL); }));
    settle();
    link->take_sent();
    return link;
  }
  void asks(const troupe::testing::fake_link_ptr& shell) {
    shell->arrives(messages::with_correlation(
                       messages::author("shell").write<messages::StacksRequest>({}, [](auto) {}), 7)
                       .any());
    settle();
  }
  /// "directory|why", of one answer; empty: there is none yet.
  std::string answered(const troupe::testing::fake_link_ptr& shell) {
    const auto sent = shell->take_sent();
    if (sent.empty())
      return {};
    REQUIRE(sent.size() == 1);
    CHECK(sent[0].envelope().correlation == 7);
    auto report = sent[0].as<messages::StacksReport>().read();
    return std::string(report->getDirectory().cStr()) + "|" + report->getWhy().cStr();
  }

  /// The dumps that the node was asked for since.
  std::vector<std::uint64_t> asked_for(const node_name& node) {
    std::vector<std::uint64_t> dumps;
    for (const auto& m : links.at(node)->take_sent())
      if (m.is<messages::StacksWanted>())
        dumps.push_back(m.as<messages::StacksWanted>().read()->getDump());
    return dumps;
  }
  void gives(const node_name& node, std::uint64_t dump, std::uint64_t g = 1) {
    says(node, messages::author(node)
                   .write<messages::MergedStacks>(generation{g},
                                                  [&](auto b) {
                                                    b.setNode(node);
                                                    b.setDump(dump);
                                                    b.setWorldSize(4);
                                                  })
                   .any());
  }
  void writes() {
    archive->writes_all();
    settle();
  }
  /// Rank 3 is stopped, or all go on.
  void stands(bool does, std::uint64_t g = 1) {
    says("a", progress("a", 0, g, does ? 3 : -1).any());
    says("b", progress("b", 2, g, does ? 3 : -1).any());
    pass(400ms);
  }

  std::shared_ptr<slow_archive> archive = std::make_shared<slow_archive>();
  std::vector<std::string> notified;
};

using dumps = std::vector<std::uint64_t>;

} // namespace

TEST_SUITE("master: stacks on request") {
  TEST_CASE("all nodes are asked, and the shell hears where it is written") {
    looked_into s;
    s.archive->first = 7; // an earlier master has written six
    s.run();
    const auto shell = s.new_shell();
    s.asks(shell);
    CHECK(s.asked_for("a") == dumps{7});
    CHECK(s.asked_for("b") == dumps{7});
    s.gives("a", 7);
    CHECK(s.archive->given.empty());
    s.gives("b", 7);
    REQUIRE(s.archive->given.size() == 1);
    CHECK(s.archive->given[0].of.size() == 2);
    CHECK(s.archive->given[0].absent.empty());
    CHECK(s.answered(shell) == "");
    s.writes();
    CHECK(s.answered(shell) == "/run/stacks/7|");
    CHECK(s.was_said("stacks of 4 of 4 ranks: /run/stacks/7/py_stack.svg"));
    s.asks(shell);
    CHECK(s.asked_for("a") == dumps{8});
  }

  TEST_CASE("a node that does not answer is named with its ranks, in time") {
    looked_into s;
    s.run();
    const auto shell = s.new_shell();
    s.asks(shell);
    s.gives("a", 1);
    s.pass(5'699ms);
    CHECK(s.archive->given.empty());
    s.pass(1ms);
    REQUIRE(s.archive->given.size() == 1);
    REQUIRE(s.archive->given[0].absent.size() == 1);
    const auto absent = s.archive->given[0].absent[0];
    CHECK(absent.why == "node b did not answer within 5.7 s");
    CHECK(absent.first_rank == 2);
    CHECK(absent.ranks == 2);
    s.writes();
    CHECK(s.answered(shell) == "/run/stacks/1|");
    // It comes too late, and changes nothing.
    s.gives("b", 1);
    CHECK(s.archive->given.size() == 1);
  }

  TEST_CASE("a second request joins the first, until that is written; too many are refused") {
    looked_into s;
    s.run();
    const auto first = s.new_shell(), second = s.new_shell(), third = s.new_shell();
    s.asks(first);
    s.asks(second);
    CHECK(s.asked_for("a") == dumps{1});
    s.gives("a", 1);
    s.gives("b", 1);
    for (std::size_t i = 2; i < limits::stacks_requests_max; ++i)
      s.asks(third);
    CHECK(s.answered(third) == "");
    s.asks(third);
    CHECK(s.answered(third) == "|16 requests for stacks wait already");
    CHECK(s.asked_for("a") == dumps{});
    s.writes();
    CHECK(s.answered(first) == "/run/stacks/1|");
    CHECK(s.answered(second) == "/run/stacks/1|");
    CHECK(third->take_sent().size() == limits::stacks_requests_max - 2);
    s.asks(first);
    CHECK(s.asked_for("a") == dumps{2});
  }

  TEST_CASE("while no generation runs a line says so, and when it has ended") {
    looked_into s;
    s.begin();
    const auto shell = s.new_shell();
    const std::string none = "|no generation runs, so there are no processes to look at";
    s.asks(shell);
    CHECK(s.answered(shell) == none);
    s.join("a");
    s.join("b");
    s.run_two();
    s.says("a", failed("a", 1, {7}).any());
    s.asks(shell);
    CHECK(s.answered(shell) == none);
  }

  TEST_CASE("a hang takes the place of a request that is open, which is answered with its stacks") {
    looked_into s;
    s.run();
    const auto shell = s.new_shell();
    s.asks(shell);
    s.gives("a", 1); // b reads, and does not come to an end
    s.stands(true);
    CHECK(s.was_said("for rank 3, which has been stopped"));
    CHECK(s.asked_for("b") == dumps{1, 2});
    s.gives("a", 2);
    s.gives("b", 2);
    s.writes();
    REQUIRE(s.archive->given.size() == 1);
    CHECK(s.archive->given[0].dump == 2);
    CHECK(s.answered(shell) == "/run/stacks/2|");
    CHECK(s.notified == std::vector<std::string>{"/run/stacks/2"});
  }

  TEST_CASE("requests cost no hang its stacks, and are not taken for them") {
    looked_into s;
    s.run();
    const auto shell = s.new_shell();
    for (std::uint64_t dump = 1; dump <= 3; ++dump) {
      s.asks(shell);
      s.gives("a", dump);
      s.gives("b", dump);
      s.writes();
      CHECK(s.answered(shell) == "/run/stacks/" + std::to_string(dump) + "|");
    }
    s.asked_for("a");
    CHECK(s.notified.empty());
    s.stands(true);
    CHECK(s.asked_for("a") == dumps{4});
    s.gives("a", 4);
    s.gives("b", 4);
    s.asks(shell); // joins what is being written
    CHECK(s.asked_for("a") == dumps{});
    s.writes();
    CHECK(s.answered(shell) == "/run/stacks/4|");
    CHECK(s.notified == std::vector<std::string>{"/run/stacks/4"});
  }

  TEST_CASE("the next generation's stacks have numbers of their own") {
    looked_into s;
    s.run();
    s.stands(true);
    CHECK(s.asked_for("a") == dumps{1});
    s.gives("a", 1);
    s.gives("b", 1);
    s.writes();
    s.says("b", failed("b", 1, {7}).any());
    s.stop_two();
    s.run_two(2);
    s.pass(2h);
    s.asked_for("a");
    s.stands(true, 2);
    CHECK(s.asked_for("a") == dumps{2});
  }
}

/// Of a generation that was sealed before it began, diagnosis hears from the planner.
TEST_SUITE("master: a diagnosis that begins late") {
  TEST_CASE("a crash of diagnosis: the rank that stands still is named all the same") {
    looked_into s;
    s.run();
    s.crash(s.at.diagnosis);
    CHECK(s.who_lost_its_link() == "");
    s.stands(true);
    CHECK(s.was_said("for rank 3, which has been stopped"));
    CHECK(s.asked_for("a") == dumps{1});
  }

  TEST_CASE("another master on the same disk names it, and so does one whose planner fell") {
    looked_into s;
    s.run();
    s.crash(s.at.recovery);
    s.join("a", running_in(1));
    s.join("b", running_in(1));
    s.stands(true);
    CHECK(s.was_said("for rank 3, which has been stopped"));
    s.root->kill();
    s.settle();
    s.root.reset();

    looked_into next;
    next.disk = s.disk;
    next.begin();
    next.join("a", running_in(1));
    next.join("b", running_in(1));
    next.stands(true);
    CHECK(next.was_said("for rank 3, which has been stopped"));
  }

  TEST_CASE("of a generation that has ended nothing is told: it waits for the next") {
    looked_into s;
    s.run();
    s.says("b", failed("b", 1, {7}).any());
    s.crash(s.at.diagnosis);
    s.stands(true);
    CHECK_FALSE(s.was_said("has been stopped"));
    s.stop_two();
    s.run_two(2);
    s.stands(true, 2);
    CHECK(s.was_said("for rank 3, which has been stopped"));
  }
}
