#include "runtime/sup/shell.hpp"
#include "runtime/sup/testing/stage.hpp"

#include <boost/algorithm/string.hpp>
#include <caf/event_based_actor.hpp>
#include <doctest/doctest.h>

#include <algorithm>

using namespace troupe;
using namespace troupe::sup;
using namespace troupe::sup::children;

namespace {

using place = address<children::handle>;

/// A stage with one dynamic supervisor on it, and an actor that sends it requests.
struct dynamic_stage : stage {
  dynamic_stage() {
    play(one_for_one("top", {3, 60s}, {dynamic("sessions", {3, 60s}, sessions, [this](auto& e) {
                       ends.push_back(e.id + (e.why ? ": " + e.why->what : " ended well"));
                     })}));
  }

  /// Two children of one fate, which write down what they are told.
  tree pair(const std::string& id, const place& a, const place& b) const {
    return one_fate(
        id, {worker("a", restart::temporary, stop_within{5s}, a, reads_its_orders(diary, 100ms)),
             worker("b", restart::temporary, stop_within{5s}, b, reads_its_orders(diary, 100ms))});
  }

  /// What the supervisor answered: "done", or the error's text.
  template<class Question>
  std::string ask(Question q) {
    auto answer = std::make_shared<std::string>("nothing");
    engine.system().spawn([answer, q, to = sessions.current()](caf::event_based_actor* self) {
      request(
          self, to, 60s, q, [answer](done) { *answer = "done"; },
          [answer](const error& e) { *answer = e.what; });
    });
    settle();
    return last_answer_ = answer, *answer;
  }

  std::string answered_meanwhile() const { return *last_answer_; }

  std::string start(const std::string& id, const place& where, const starter& how) {
    return ask(start_child{worker(id, restart::temporary, stop_within{5s}, where, how)});
  }

  /// What was written down, sorted: children that stop at once have no order.
  std::string said_by_both() const {
    std::vector<std::string> lines;
    boost::split(lines, diary.read(), boost::is_any_of(","));
    for (auto& l : lines)
      boost::trim(l);
    std::sort(lines.begin(), lines.end());
    return boost::join(lines, ", ");
  }

  address<dynamic_handle> sessions;
  std::vector<std::string> ends;

 private:
  std::shared_ptr<std::string> last_answer_;
};

} // namespace

TEST_SUITE("dynamic supervisor") {
  TEST_CASE("a child is started on demand and forgotten at its end") {
    dynamic_stage s;
    const place a;
    CHECK(s.start("a", a, well_behaved(s.diary)) == "done");
    REQUIRE(a);
    s.say(a, crash{});
    CHECK_FALSE(a);
    CHECK(s.count("child_ended") == 1);
    CHECK(s.count("child_restarted") == 0);
    CHECK(s.start("a", a, well_behaved(s.diary)) == "done");
    CHECK(a);
  }

  TEST_CASE("the id of a living child is refused") {
    dynamic_stage s;
    const place a;
    s.start("a", a, well_behaved(s.diary));
    CHECK(s.start("a", {}, well_behaved(s.diary)) == "there is a child called a");
    CHECK(a);
  }

  TEST_CASE("a child that cannot be started is its requester's problem, not the supervisor's") {
    dynamic_stage s;
    for (int i = 0; i < 10; ++i)
      CHECK(s.start("a", {}, crashes_on_start(s.diary)) == "no port");
    CHECK(s.endings.empty());
    CHECK(s.sessions);
  }

  TEST_CASE("a child that is not valid is refused") {
    dynamic_stage s;
    CHECK(s.start("", {}, well_behaved(s.diary)) == "dynamic: a child without an id");
    CHECK(s.ask(start_child{one_for_one("group", {1, 0s}, {})}) ==
          "dynamic/group: a restart budget without a period");
  }

  TEST_CASE("a child may be a tree: its end is told, with the reason of the leaf that failed") {
    dynamic_stage s;
    const place a, b;
    CHECK(s.ask(start_child{s.pair("g1", a, b).as(restart::temporary)}) == "done");
    REQUIRE(a);
    REQUIRE(b);
    s.say(a, crash{});
    s.pass(1s);
    CHECK_FALSE(b);
    CHECK(s.ends == std::vector<std::string>{"g1: told to crash"});
    CHECK(s.diary.read() ==
          "a starts, b starts, a ends, b is told sibling 'told to crash' 0, b ends");
  }

  TEST_CASE("a tree that is stopped ends well, and its leaves know by whose order") {
    dynamic_stage s;
    const place a, b;
    s.ask(start_child{s.pair("g1", a, b).as(restart::temporary)});
    s.diary.read();
    CHECK(s.ask(stop_child{"g1", {stop_order::cause::asked, "rescale", 15, 500ms}}) == "nothing");
    CHECK(s.said_by_both() == "a is told asked 'rescale' 15, b is told asked 'rescale' 15");
    s.ask(stop_child{"g1", {stop_order::cause::asked, "now", 9, 10ms}});
    s.pass(1s);
    CHECK(s.said_by_both() == "a ends, a is told asked 'now' 9, b ends, b is told asked 'now' 9");
    CHECK(s.ends == std::vector<std::string>{"g1 ended well"});
  }

  TEST_CASE("a tree goes down with its supervisor, and that is told to no one") {
    dynamic_stage s;
    const place a, b;
    s.ask(start_child{s.pair("g1", a, b).as(restart::temporary)});
    s.diary.read();
    s.running->stop();
    s.pass(1s);
    CHECK(s.said_by_both() == "a ends, a is told shutdown '' 0, b ends, b is told shutdown '' 0");
    CHECK(s.ends.empty());
    CHECK(s.endings.size() == 1);
  }

  TEST_CASE("a restart beyond what its name may have is refused") {
    dynamic_stage s;
    const auto again = [&s](const char* id) {
      return s.ask(start_child{
          worker(id, restart::temporary, stop_within{5s}, place{}, well_behaved(s.diary)),
          "node-1"});
    };
    for (const char* id : {"a", "b", "c"})
      CHECK(again(id) == "done");
    CHECK(again("d") == "all 3 restarts of node-1 are used up");
  }

  TEST_CASE("stopping a child is answered once it is down, its neighbours live on") {
    dynamic_stage s;
    const place a, b;
    s.start("a", a, slow_to_stop(s.diary, 2s));
    s.start("b", b, well_behaved(s.diary));
    CHECK(s.ask(stop_child{"a"}) == "nothing");
    s.pass(2s);
    CHECK(s.answered_meanwhile() == "done");
    CHECK_FALSE(a);
    CHECK(b);
    CHECK(s.ask(stop_child{"a"}) == "there is no child called a");
  }

  TEST_CASE("all children are stopped at once, and the stubborn one is killed") {
    dynamic_stage s;
    s.start("a", {}, slow_to_stop(s.diary, 3s));
    s.start("b", {}, ignores_shutdown(s.diary));
    s.start("c", {}, slow_to_stop(s.diary, 3s));
    s.diary.read();
    s.running->stop();
    s.pass(3s);
    CHECK(s.endings.empty());
    s.pass(2s);
    CHECK(s.count("child_killed") == 1);
    REQUIRE(s.endings.size() == 1);
    CHECK_FALSE(s.endings[0]);
  }

  TEST_CASE("a supervisor with a fixed list refuses children") {
    stage s;
    address<supervisor_handle> top;
    s.play(one_for_one(
               "top", {3, 60s},
               {worker("a", restart::permanent, stop_within{1s}, place{}, well_behaved(s.diary))})
               .at(top));
    REQUIRE(top);
    const auto h = caf::actor_cast<dynamic_handle>(top.current());
    std::string answer;
    s.engine.system().spawn([&answer, h](caf::event_based_actor* self) {
      request(
          self, h, 1s, stop_child{"a"}, [](done) {},
          [&answer](const error& e) { answer = e.what; });
    });
    s.settle();
    CHECK(answer == "top has a fixed list of children");
  }
}

TEST_SUITE("report") {
  TEST_CASE("the whole tree is described, each actor in its own words") {
    stage s;
    const place a, b;
    s.play(rest_for_one("top", {3, 60s},
                        {worker("a", restart::permanent, stop_within{1s}, a, well_behaved(s.diary)),
                         one_for_all("group", {2, 60s},
                                     {worker("b", restart::transient, stop_within{1s}, b,
                                             well_behaved(s.diary))})}));
    s.say(a, poke{});
    s.say(b, crash{});
    s.pass(7s);
    const auto r = s.report();
    REQUIRE(r);
    CHECK(to_text(*r) ==
          "top (rest_for_one) running, up 7.0 s, 0 restarts, 0 of 3 used\n"
          "  a (worker) running: poked 1 times, up 7.0 s, 0 restarts\n"
          "  group (one_for_all) running, up 7.0 s, 0 restarts, 1 of 2 used\n"
          "    b (worker) running: poked 0 times, up 7.0 s, 1 restarts, ended 7.0 s ago: told to "
          "crash\n");
  }

  TEST_CASE("a silent child is reported as silent, at any depth, and delays no other description") {
    stage s;
    s.play(one_for_one(
        "top", {3, 60s},
        {one_for_one(
            "group", {3, 60s},
            {worker("mute", restart::permanent, stop_within{1s}, place{}, never_describes(s.diary)),
             worker("b", restart::permanent, stop_within{1s}, place{}, well_behaved(s.diary))})}));
    const auto r = s.report();
    REQUIRE(r);
    const auto& group = r->children.at(0);
    CHECK(group.state == "running");
    CHECK(group.children.at(0).phase == "did not answer within 1 s");
    CHECK(group.children.at(0).state == "silent");
    CHECK(group.children.at(1).phase == "poked 0 times");
  }

  TEST_CASE("a child that is down or stopping need not answer") {
    stage s;
    const place a, b;
    s.play(one_for_all(
        "top", {3, 60s},
        {worker("a", restart::permanent, stop_within{60s}, a, slow_to_stop(s.diary, 30s)),
         worker("b", restart::permanent, stop_within{1s}, b, well_behaved(s.diary))}));
    s.say(b, crash{});
    const auto r = s.report();
    REQUIRE(r);
    CHECK(r->children.at(0).state == "stopping");
    CHECK(r->children.at(1).state == "down");
  }

  TEST_CASE("a dynamic child that ended stays in the report for a while, with its reason") {
    dynamic_stage s;
    const place a;
    s.start("a", a, well_behaved(s.diary));
    s.pass(2s);
    s.say(a, crash{});
    s.pass(1s);
    const auto past = [&s] { return s.report()->children.at(0).children; };
    REQUIRE(past().size() == 1);
    CHECK(past().at(0).state == "ended");
    CHECK(past().at(0).last_end->why == "told to crash");
    s.pass(limits::ended_shown_for);
    CHECK(past().empty());
  }

  TEST_CASE("children that ended well do not push one that crashed out of the report") {
    dynamic_stage s;
    const place a;
    s.start("a", a, well_behaved(s.diary));
    s.say(a, crash{});
    for (std::size_t i = 0; i < 2 * limits::ended_shown_max; ++i) {
      const place b;
      const auto id = "b" + std::to_string(i);
      s.start(id, b, well_behaved(s.diary));
      REQUIRE(s.ask(stop_child{id}) == "done");
    }
    const auto past = s.report()->children.at(0).children;
    CHECK(past.size() == limits::ended_shown_max);
    CHECK(past.at(0).name == "a");
    CHECK(past.back().name == "b" + std::to_string(2 * limits::ended_shown_max - 1));
  }

  TEST_CASE("a tree that has ended has no report") {
    stage s;
    s.play(one_for_one("top", {3, 60s}, {}));
    s.running->stop();
    s.settle();
    std::optional<error> e;
    s.running->report([&e](const result<node_report>& r) { e = r.error(); });
    s.settle();
    REQUIRE(e);
    CHECK(e->code == errc::closed);
  }
}
