#include "tests/actors/uplink_story.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

using phase = uplink_core::phase;
using story = uplink_story;

TEST_SUITE("uplink_core: without a master") {
  /// Dials until it is over or `most` has passed; answers how long that took.
  duration tries(story & s, const doing& d, duration most, errc code = errc::unavailable) {
    const auto begin = s.now;
    while (s.core.next_wakeup() && s.now < begin + most) {
      s.waits();
      s.knows(d);
      s.not_dialled(code);
    }
    return s.now - begin;
  }

  TEST_CASE("a node whose workers train waits for half an hour") {
    story s;
    s.links(running_in(1));
    s.now += 1h;
    s.link_ends();
    CHECK(tries(s, running_in(1), 29min) >= 29min);
    CHECK(s.core.current_phase() == phase::resting);
    const auto more = tries(s, running_in(1), 10min);
    CHECK(more > 30s);
    CHECK(more < 70s);
    CHECK(s.core.current_phase() == phase::over);
  }

  TEST_CASE("and finds it again") {
    story s;
    s.links(running_in(1));
    s.link_ends();
    tries(s, running_in(1), 20min);
    s.links(running_in(1));
    CHECK(s.core.current_phase() == phase::linked);
  }

  TEST_CASE("from when nothing runs, the node needs its master and waits a minute") {
    for (const auto& then : {failed_in(1), finished_in(1), idle_after(1), ready_for(2)}) {
      story s;
      s.links(running_in(1));
      s.link_ends();
      tries(s, running_in(1), 20min);
      CHECK(s.core.current_phase() == phase::resting);
      const auto more = tries(s, then, 10min);
      CHECK(more > 50s);
      CHECK(more < 70s);
      CHECK(s.core.current_phase() == phase::over);
    }
  }

  TEST_CASE("a supervisor that was restarted beside training workers waits as long") {
    story s;
    s.core = uplink_core{uplink_told(), messages::author("a/uplink", term{5}), random_source(1),
                         incarnation{7}, dawn};
    CHECK(tries(s, running_in(1), 25min, errc::refused) >= 25min);
    CHECK(s.core.current_phase() == phase::resting);
  }

  TEST_CASE("it says so, with what may be done about it") {
    story s;
    s.links(running_in(1));
    s.link_ends();
    std::vector<std::string> told;
    const auto begin = s.now;
    while (s.now < begin + 10min) {
      s.waits();
      s.knows(running_in(1));
      const auto said = notes(s.core.dialled(s.now, error{errc::closed, "connection refused"}));
      if (!said.empty())
        told.push_back(said);
    }
    REQUIRE(told.size() >= 10);
    CHECK(told.size() <= 14);
    CHECK(told.back().find("no link to the master at master:29400: connection refused; training "
                           "goes on without it, and this node tries to reach it for") == 0);
  }

  TEST_CASE("where others may replace it, a node that the network cuts off waits a minute only") {
    const auto elastic = [] {
      auto o = uplink_told();
      o.nodes_min = 2;
      return uplink_core{o, messages::author("a/uplink"), random_source(1), incarnation{7}, dawn};
    };
    story cut{elastic()};
    cut.links(running_in(1));
    cut.link_ends();
    CHECK(tries(cut, running_in(1), 10min) < 70s);
    CHECK(cut.core.current_phase() == phase::over);
    // The master's machine answers, and the master is not there: none of the others has one.
    story absent{elastic()};
    absent.links(running_in(1));
    absent.link_ends();
    CHECK(tries(absent, running_in(1), 10min, errc::closed) >= 10min);
    CHECK(absent.core.current_phase() == phase::resting);
  }

  TEST_CASE("and its workers end before that: other nodes may train their ranks by then") {
    for (const bool elastic : {false, true})
      for (const auto code : {errc::unavailable, errc::closed}) {
        CAPTURE(elastic);
        CAPTURE(to_string(code));
        auto o = uplink_told();
        o.nodes_min = elastic ? 2 : o.nodes_max;
        story s{
            uplink_core{o, messages::author("a/uplink"), random_source(1), incarnation{7}, dawn}};
        s.links(running_in(3));
        s.link_ends();
        std::optional<duration> ended;
        for (const auto begin = s.now; s.now < begin + 30s;) {
          s.waits();
          s.knows(ended ? idle_after(3) : running_in(3));
          const auto said = s.not_dialled(code);
          if (said.find("start_over Stop g3: no network to the master") == 0) {
            CHECK_FALSE(ended);
            ended = s.now - begin;
          }
        }
        CHECK(ended.has_value() == (elastic && code == errc::unavailable));
        CHECK((!ended ||
               (*ended >= limits::isolated_within && *ended < limits::isolated_within + 6s)));
        CHECK(s.core.current_phase() == phase::resting);
      }
  }

  /// One of two to four nodes that trains, and whose master does not answer.
  story missing(const doing& d = running_in(3), errc code = errc::unavailable) {
    auto o = uplink_told();
    o.nodes_min = 2;
    story s{uplink_core{o, messages::author("a/uplink"), random_source(1), incarnation{7}, dawn}};
    s.links(running_in(3));
    CHECK(s.core.reach() == messages::MasterReach::Reach::LINKED);
    s.link_ends();
    s.waits();
    s.knows(d);
    s.not_dialled(code);
    return s;
  }

  std::string neighbours_say(story & s, const std::string& has_it, std::uint64_t earlier = 0) {
    const auto m = messages::local<messages::NeighboursSaid>("neighbours", [&](auto b) {
      b.setHasIt(has_it);
      b.setAsked(3);
      b.setOutage(s.core.outage() - earlier);
    });
    return s.tell(s.core.neighbours_said(s.now, m));
  }

  TEST_CASE("its neighbours know whether it is cut off: then its workers end at once") {
    auto s = missing();
    CHECK(s.core.reach() == messages::MasterReach::Reach::MISSED);
    s.now += 1s;
    SUBCASE("one has the master") {
      CHECK(neighbours_say(s, "b").find("start_over Stop g3: no network to the master for ") == 0);
    }
    SUBCASE("none answers") {
      CHECK(neighbours_say(s, "").find(
                ", nor to any of 3 other nodes that were asked: this node seems") !=
            std::string::npos);
    }
    SUBCASE("while an attempt is under way") {
      s.waits();
      CHECK(s.core.current_phase() == phase::asking);
      CHECK(neighbours_say(s, "b").find("start_over") == 0);
      // What the agent said of its workers is not true any more.
      CHECK(s.knows(running_in(3)).find("dial") == std::string::npos);
      CHECK(s.core.current_phase() == phase::resting);
    }
    SUBCASE("while it dials") {
      s.waits();
      s.knows(running_in(3));
      CHECK(neighbours_say(s, "b").find("start_over") == 0);
      CHECK(s.dialled().find("close_link: this node is cut off") != std::string::npos);
    }
    SUBCASE("not by what they said of an earlier outage") {
      CHECK(neighbours_say(s, "b", 1) == "");
      CHECK(neighbours_say(s, "b").find("start_over") == 0);
    }
    CHECK(s.core.reach() == messages::MasterReach::Reach::ABSENT);
    CHECK(neighbours_say(s, "b") == "");
  }

  TEST_CASE("what they say is too late for a node that has its master, or trains nothing") {
    auto back = missing();
    back.links(running_in(3));
    CHECK(neighbours_say(back, "b") == "");
    for (auto s : {missing(idle_after(3)), missing(running_in(3), errc::closed)}) {
      CHECK(s.core.reach() == messages::MasterReach::Reach::ABSENT);
      CHECK(neighbours_say(s, "b") == "");
    }
    auto greeted = missing();
    greeted.waits();
    greeted.knows(running_in(3));
    greeted.dialled();
    CHECK(greeted.core.reach() == messages::MasterReach::Reach::ABSENT);
    // Its address has answered: whatever follows, the neighbours may be ahead of this node.
    greeted.link_ends();
    CHECK(greeted.core.reach() == messages::MasterReach::Reach::ABSENT);
    greeted.waits();
    greeted.knows(running_in(3));
    greeted.not_dialled(errc::unavailable);
    CHECK(greeted.core.reach() == messages::MasterReach::Reach::ABSENT);
    auto refused = missing(running_in(3), errc::closed);
    refused.waits();
    refused.knows(running_in(3));
    refused.not_dialled(errc::unavailable);
    CHECK(refused.core.reach() == messages::MasterReach::Reach::ABSENT);
    // In the next outage they are asked.
    greeted.links(running_in(3));
    greeted.link_ends();
    greeted.waits();
    greeted.knows(running_in(3));
    greeted.not_dialled(errc::unavailable);
    CHECK(greeted.core.reach() == messages::MasterReach::Reach::MISSED);
  }

  TEST_CASE("a node is cut off from when nothing answers, and not from when its master went") {
    auto o = uplink_told();
    o.nodes_min = 2;
    story s{uplink_core{o, messages::author("a/uplink"), random_source(1), incarnation{7}, dawn}};
    s.links(running_in(3));
    s.link_ends();
    const auto try_for = [&s](duration time, errc code) {
      std::optional<duration> ended;
      for (const auto begin = s.now; s.now < begin + time && !ended;) {
        s.waits();
        s.knows(running_in(3));
        if (s.not_dialled(code).find("start_over Stop g3: no network to the master") == 0)
          ended = s.now - begin;
      }
      return ended;
    };
    // Its machine is there, and its next master is not yet.
    CHECK_FALSE(try_for(5min, errc::closed));
    // One attempt that gets no answer says little.
    s.waits();
    s.knows(running_in(3));
    CHECK(s.not_dialled(errc::unavailable).find("start_over") == std::string::npos);
    CHECK(s.core.current_phase() == phase::resting);
    CHECK_FALSE(try_for(1min, errc::closed));
    const auto ended = try_for(30s, errc::unavailable);
    REQUIRE(ended);
    CHECK(*ended >= limits::isolated_within - 6s);
  }

  TEST_CASE("the master knows better than the size of the job whether others may replace it") {
    for (const bool others_suffice : {false, true})
      for (const bool may_shrink : {false, true}) {
        CAPTURE(others_suffice);
        CAPTURE(may_shrink);
        auto o = uplink_told();
        o.nodes_min = may_shrink ? 2 : o.nodes_max;
        story s{
            uplink_core{o, messages::author("a/uplink"), random_source(1), incarnation{7}, dawn}};
        s.links(running_in(3));
        CHECK(s.hears(dispensable(others_suffice)) == "");
        s.link_ends();
        CHECK((tries(s, running_in(3), 10min) < 70s) == others_suffice);
      }
  }

  TEST_CASE("what a master said of an earlier world or link does not count") {
    for (const bool new_link : {false, true}) {
      story s;
      s.links(running_in(3));
      s.hears(dispensable(true));
      if (new_link) {
        s.link_ends();
        s.links(running_in(3));
      } else {
        s.hears(prepare(4, {"a", "b"}).any());
      }
      s.link_ends();
      CHECK(tries(s, running_in(4), 10min) >= 10min);
    }
  }

  TEST_CASE("what answers at its address in its absence ends nothing") {
    for (const auto code : {errc::refused, errc::invalid}) {
      story s;
      s.links(running_in(1));
      s.link_ends();
      s.waits();
      s.knows(running_in(1));
      CHECK(s.not_dialled(code) == "");
      CHECK(s.waits() == "ask_state");
    }
  }

  TEST_CASE("a node that its master gave up in the meantime has all its time to join anew") {
    story s;
    s.links(running_in(1));
    s.link_ends();
    tries(s, running_in(1), 10min);
    // Its workers have finished, and the time of a node without workers is nearly over.
    tries(s, finished_in(1), 55s);
    s.waits();
    s.knows(finished_in(1));
    s.dialled();
    s.now += 10s;
    CHECK(s.hears(refused(true)) ==
          lines("start_over Stop g1: not you", "close_link: joining anew"));
    CHECK(s.core.current_phase() == phase::resting);
    // A master that says it again to an incarnation that it has not seen is not waited for longer.
    const auto begin = s.now;
    while (s.core.current_phase() != phase::over && s.now < begin + 10min) {
      s.waits();
      s.knows(idle_after(1));
      s.dialled();
      s.hears(refused(true));
    }
    CHECK(s.now - begin > 50s);
    CHECK(s.now - begin < 70s);
  }

  TEST_CASE("another job's master that has the same token is not obeyed") {
    for (const bool retry : {false, true}) {
      story s;
      s.links(running_in(1));
      s.link_ends();
      s.waits();
      s.knows(running_in(1));
      s.dialled();
      CHECK(s.hears(refused(retry, 0, {}, "theirs")) ==
            "close_link: the master there serves another job ('theirs')");
      CHECK(s.core.which() == incarnation{7});
      CHECK(s.waits() == "ask_state");
    }
    story first;
    first.waits();
    first.knows(nothing());
    first.dialled();
    CHECK(first.hears(refused(false, 0, {}, "theirs")) ==
          lines("close_link: the master at master:29400 refused this node: not you",
                "give_up: the master at master:29400 refused this node: not you"));
  }
}
