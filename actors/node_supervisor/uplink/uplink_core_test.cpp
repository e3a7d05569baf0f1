#include "messages/text.hpp"
#include "tests/actors/uplink_story.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

using phase = uplink_core::phase;
using story = uplink_story;

TEST_SUITE("uplink_core: getting linked") {
  TEST_CASE("it asks the agent, says everything in its hello, and is linked when welcomed") {
    story s;
    CHECK(s.core.next_wakeup() == dawn);
    CHECK(s.ticks() == "ask_state");
    CHECK(s.ticks() == "");
    CHECK(s.knows(running_in(3)) == "dial Hello a running g3");
    CHECK(s.dialled() == "");
    CHECK(s.core.in_words() == "waiting for a welcome from master:29400");
    CHECK(s.hears(welcome()) == "");
    CHECK(s.core.in_words() == "linked to master:29400");
    CHECK_FALSE(s.core.next_wakeup());
    auto h = s.hellos.at(0).read();
    CHECK(h->getJob() == "job");
    CHECK(h->getNode() == "a");
    CHECK(h->getIncarnation() == 7);
    CHECK(h->getAddress() == "a.lan");
    CHECK(h->getBulkPort() == 4713);
    CHECK(h->getSlots() == 8);
    CHECK(h->getWorkerRole() == "trainer");
    CHECK(h->getWantedRank() == 3);
    CHECK(h->getNodesMin() == 4);
    CHECK(h->getNodesMax() == 4);
    CHECK(h->getRole() == messages::Hello::Role::NODE);
  }

  TEST_CASE("no agent, no hello: it tries again later") {
    story s;
    s.ticks();
    CHECK(s.tell(s.core.state_unknown(s.now, "down")) == "");
    CHECK(s.waits() == "ask_state");
  }

  TEST_CASE(
      "attempts come ever more seldom, half of the pause being chance, and not beyond a bound") {
    story s;
    auto expected = duration(100ms);
    for (int i = 0; i < 10; ++i) {
      s.waits();
      s.knows(nothing());
      s.not_dialled(errc::unavailable);
      const auto pause = *s.core.next_wakeup() - s.now;
      CHECK(pause >= expected / 2);
      CHECK(pause <= expected);
      expected = std::min(expected * 2, duration(5s));
    }
  }

  TEST_CASE("a welcome makes the next attempt a quick one again") {
    story s;
    for (int i = 0; i < 8; ++i) {
      s.waits();
      s.knows(nothing());
      s.not_dialled(errc::unavailable);
    }
    s.links();
    s.link_ends();
    CHECK(*s.core.next_wakeup() - s.now <= 100ms);
  }

  TEST_CASE("a peer that says no is not asked again") {
    for (const auto code : {errc::refused, errc::invalid}) {
      story s;
      s.ticks();
      s.knows(nothing());
      CHECK(s.not_dialled(code) == lines("close_link: no route", "give_up: no route"));
      CHECK_FALSE(s.core.next_wakeup());
    }
  }

  TEST_CASE("without a link for too long it gives up") {
    story s;
    std::string last;
    while (s.core.next_wakeup()) {
      s.waits();
      s.knows(nothing());
      last = s.not_dialled(errc::unavailable);
    }
    CHECK(last == lines("close_link: no link to the master at master:29400 for 60.0 s: no route",
                        "give_up: no link to the master at master:29400 for 60.0 s: no route"));
    CHECK(s.now >= dawn + 60s);
    CHECK(s.now < dawn + 66s);
  }

  TEST_CASE("a master that accepts and then says nothing is left in time") {
    story s;
    s.ticks();
    s.knows(nothing());
    s.dialled();
    CHECK(s.core.next_wakeup() == s.now + limits::handshake_within);
    CHECK(s.waits() == "close_link: the master did not answer the hello");
    CHECK(s.waits() == "ask_state");
  }

  TEST_CASE("a master that accepts and closes is not waited for longer than one that is silent") {
    story s;
    while (s.core.next_wakeup() && s.now < dawn + 100s) {
      s.waits();
      s.knows(nothing());
      s.dialled();
      s.link_ends();
    }
    CHECK(s.core.current_phase() == phase::over);
    CHECK(s.now < dawn + 66s);
  }

  TEST_CASE("the same error is told once") {
    story s;
    s.ticks();
    s.knows(nothing());
    CHECK(notes(s.core.dialled(s.now, error{errc::unavailable, "no route"})) ==
          "waiting for the master at master:29400 (no route)");
    s.waits();
    s.knows(nothing());
    CHECK(notes(s.core.dialled(s.now, error{errc::unavailable, "no route"})) == "");
    s.waits();
    s.knows(nothing());
    CHECK(notes(s.core.dialled(s.now, error{errc::unavailable, "timeout"})) != "");
  }

  TEST_CASE("a long wait is told now and again, with how long it may last") {
    story s;
    std::vector<std::string> told;
    while (s.core.next_wakeup() && s.now < dawn + 60s) {
      s.waits();
      s.knows(nothing());
      const auto said = notes(s.core.dialled(s.now, error{errc::unavailable, "no route"}));
      if (!said.empty())
        told.push_back(said);
    }
    REQUIRE(told.size() == 3);
    CHECK(told[0] == "waiting for the master at master:29400 (no route)");
    CHECK(told[1].find("no link to the master at master:29400: no route; trying again for 4") == 0);
    CHECK(told[2].find("no link to the master at master:29400: no route; trying again for 2") == 0);
  }
}

TEST_SUITE("uplink_core: linked") {
  TEST_CASE("directives reach the agent, but none before the welcome") {
    story s;
    s.ticks();
    s.knows(nothing());
    s.dialled();
    CHECK(s.hears(stop(1).any()) == "");
    s.hears(welcome());
    CHECK(s.hears(stop(1).any()) == "deliver Stop g1: enough");
    CHECK(s.hears(welcome()) == "");
  }

  TEST_CASE("a link that ends is dialled again, with what the agent then says, as the same node") {
    story s;
    s.links();
    s.now += 1h;
    CHECK(s.link_ends() == "");
    CHECK(s.waits() == "ask_state");
    CHECK(s.knows(running_in(2)) == "dial Hello a running g2");
    CHECK(s.hellos[1].read()->getIncarnation() == 7);
  }

  TEST_CASE("the time without a link begins anew with each loss") {
    story s;
    s.links();
    s.now += 1h;
    s.link_ends();
    s.waits();
    s.knows(nothing());
    s.not_dialled(errc::unavailable);
    CHECK(s.core.current_phase() == phase::resting);
  }

  TEST_CASE("reports go out while there is a link; before the hello is written they are in it") {
    story s;
    CHECK(s.reports(finished("a", 1).any()) == "");
    s.ticks();
    CHECK(s.reports(finished("a", 1).any()) == "");
    s.knows(finished_in(1));
    s.dialled();
    CHECK(s.hears(welcome()) == "");
    CHECK(s.reports(running("a", 2).any()) == "say Running g2 a");
  }

  TEST_CASE(
      "what happens between the hello and its answer is said after the welcome, newest once") {
    story s;
    s.ticks();
    s.knows(running_in(1));
    s.reports(failed("a", 1, {1}).any());
    s.dialled();
    s.reports(failed("a", 1, {1, 2}).any());
    CHECK(s.hears(welcome()) == "say Failed g1 a [a/0: exit code 1, a/1: exit code 2]");
    s.link_ends();
    s.links(failed_in(1, {1, 2}));
    CHECK(s.core.current_phase() == phase::linked);
  }

  TEST_CASE("what was to be said after a welcome that never came is in the next hello") {
    story s;
    s.ticks();
    s.knows(running_in(1));
    s.dialled();
    s.reports(failed("a", 1, {1}).any());
    s.link_ends();
    s.waits();
    s.knows(failed_in(1, {1}));
    s.dialled();
    CHECK(s.hears(welcome()) == "");
  }

  TEST_CASE("an agent that restarted has another state: the link is made anew to say it") {
    story s;
    s.links(running_in(1));
    s.now += 1h;
    CHECK(s.agent_restarts() == "close_link: the node's agent has restarted");
    CHECK(s.waits() == "ask_state");
    CHECK(s.knows(nothing()) == "dial Hello a idle g0");
  }

  TEST_CASE("also when its old state is on its way in a hello") {
    story s;
    s.ticks();
    s.knows(running_in(1));
    CHECK(s.agent_restarts() == "");
    CHECK(s.dialled() == "close_link: the node's agent has restarted");
    CHECK(s.waits() == "ask_state");
    CHECK(s.knows(nothing()) == "dial Hello a idle g0");
    CHECK(s.dialled() == "");

    story t;
    t.ticks();
    t.knows(running_in(1));
    t.dialled();
    CHECK(t.agent_restarts() == "close_link: the node's agent has restarted");
  }
}

TEST_SUITE("uplink_core: masters that follow each other") {
  TEST_CASE("the newest master is followed, and hellos say which that was") {
    story s;
    s.links();
    CHECK(s.hellos.back().envelope().follows == term{});
    s.link_ends();
    s.waits();
    s.knows(running_in(3));
    s.dialled();
    CHECK(s.hears(welcome(term{5})) == "");
    CHECK(s.core.current_phase() == phase::linked);
    CHECK(s.core.follows() == term{5});
    s.link_ends();
    s.waits();
    s.knows(running_in(3));
    CHECK(s.hellos.back().envelope().follows == term{5});
  }

  TEST_CASE(
      "an older master is not obeyed: its welcome and its refusal are left, training goes on") {
    for (const auto& answer :
         {welcome(term{4}), refused(true, 0, term{4}), refused(false, 0, term{4})}) {
      CAPTURE(messages::to_text(answer));
      story s;
      s.core = uplink_core{uplink_told(), messages::author("a/uplink", term{5}), random_source(1),
                           incarnation{7}, dawn};
      s.waits();
      s.knows(running_in(3));
      s.dialled();
      const auto leaves = "close_link: the master there (term 4) is older than the one this node "
                          "has followed (term 5)";
      CHECK(s.hears(answer) == leaves);
      CHECK(s.core.current_phase() == phase::resting);
      CHECK(s.core.which() == incarnation{7});
    }
  }

  TEST_CASE("what an older master said is dropped, also on a link that is in use") {
    story s;
    s.waits();
    s.knows(running_in(3));
    s.dialled();
    s.hears(welcome(term{5}));
    const auto stop_by = [](term master) {
      return messages::author("master/rendezvous", master)
          .write<messages::Stop>(generation{3}, [](auto) {})
          .any();
    };
    CHECK(s.hears(stop_by(term{4})) == "");
    CHECK(s.hears(stop_by(term{5})) == "deliver Stop g3: ");
  }
}

TEST_SUITE("uplink_core: refused, and other ends") {
  TEST_CASE("refused for good") {
    story s;
    s.ticks();
    s.knows(nothing());
    s.dialled();
    CHECK(s.hears(refused(false)) ==
          lines("close_link: the master at master:29400 refused this node: not you",
                "give_up: the master at master:29400 refused this node: not you"));
    CHECK(s.hears(refused(false)) == "");
  }

  TEST_CASE(
      "refused for good once it has taken part: it says Goodbye when its workers have ended") {
    story s;
    s.links();
    CHECK(s.hears(refused(false)) ==
          "give_up: the master at master:29400 refused this node: not you");
    const auto bye = messages::author("a/agent").write<messages::Goodbye>(
        {}, [](auto b) { b.setReason("refused"); });
    CHECK(s.reports(bye.any()) == "say Goodbye: refused");
    CHECK_FALSE(s.core.next_wakeup());
  }

  TEST_CASE("once the node has said Goodbye it does not come back, whatever becomes of the link") {
    const auto bye = messages::author("a/agent")
                         .write<messages::Goodbye>({}, [](auto b) { b.setReason("bye"); })
                         .any();
    story s;
    s.links();
    CHECK(s.reports(bye) == "say Goodbye: bye");
    CHECK(s.link_ends() == "");
    CHECK_FALSE(s.core.next_wakeup());

    // Said while a hello is on its way: it still goes out, so that the master need not wait.
    story greeting;
    greeting.ticks();
    greeting.knows(nothing());
    greeting.dialled();
    CHECK(greeting.reports(bye) == "");
    CHECK(greeting.hears(welcome()).find("say Goodbye: bye") != std::string::npos);
    CHECK(greeting.link_ends() == "");
    CHECK_FALSE(greeting.core.next_wakeup());

    story away;
    CHECK(away.reports(bye) == "");
    CHECK_FALSE(away.core.next_wakeup());
  }

  TEST_CASE("refused for now: what it was doing ends, and it joins anew as another incarnation") {
    story s;
    s.ticks();
    s.knows(running_in(4));
    s.dialled();
    CHECK(s.hears(refused(true)) ==
          lines("start_over Stop g4: not you", "close_link: joining anew"));
    CHECK(s.hears(refused(true)) == "");
    s.waits();
    s.knows(idle_after(4));
    CHECK(s.hellos[1].read()->getIncarnation() != 7);
    CHECK(s.core.which() == incarnation{s.hellos[1].read()->getIncarnation()});
  }

  TEST_CASE("given up while linked: the newest generation ends, and there is time to join anew") {
    story s;
    s.links(nothing());
    s.hears(prepare(5, {"a"}).any());
    s.now += 1h;
    CHECK(s.hears(refused(true)) ==
          lines("start_over Stop g5: not you", "close_link: joining anew"));
    CHECK(s.waits() == "ask_state");
  }

  TEST_CASE("a node that is fenced says so in one line") {
    story s;
    s.links();
    s.link_ends();
    s.waits();
    s.knows(running_in(4));
    s.dialled();
    CHECK(notes(s.core.received(s.now, refused(true))) ==
          "the master gave this node up (not you): what still runs here is ended and the node "
          "joins anew");
    CHECK(s.core.next_wakeup() <= s.now + 200ms);
  }

  TEST_CASE("a node told to wait waits that long, not much longer, and does not give up over it") {
    story s;
    s.ticks();
    for (int i = 0; i < 10; ++i) {
      s.knows(nothing());
      s.dialled();
      CHECK(notes(s.core.received(s.now, refused(true, 20'000))) ==
            "the master does not take this node yet: not you");
      REQUIRE(s.core.next_wakeup());
      CHECK(*s.core.next_wakeup() >= s.now + 20s);
      CHECK(*s.core.next_wakeup() <= s.now + 26s);
      REQUIRE(s.waits() == "ask_state");
    }
  }

  TEST_CASE("no master can make a node wait for ever") {
    story s;
    s.ticks();
    s.knows(nothing());
    s.dialled();
    s.hears(refused(true, UINT32_MAX));
    CHECK(*s.core.next_wakeup() <= s.now + limits::rejoin_after_max + 1s);
  }

  TEST_CASE("after the verdict no master is dialled again, but last words still go out") {
    story s;
    s.links();
    CHECK(s.hears(conclude(true).any()) == "deliver Conclude success: because");
    CHECK(s.reports(messages::author("a")
                        .write<messages::Goodbye>({}, [](auto b) { b.setReason("bye"); })
                        .any()) == "say Goodbye: bye");
    CHECK(s.link_ends() == "");
    CHECK_FALSE(s.core.next_wakeup());
  }

  TEST_CASE("after the verdict only the last saves are heard of") {
    story s;
    s.links();
    s.hears(conclude(false).any());
    const auto finalized =
        messages::author("master").write<messages::StepFinalized>({}, [](auto) {});
    CHECK(s.hears(finalized.any()).find("deliver StepFinalized") == 0);
    CHECK(s.hears(stop(1).any()) == "");
  }

  TEST_CASE("an agent that restarts after the end is told of it once more") {
    story s;
    s.links();
    s.hears(conclude(true).any());
    CHECK(s.agent_restarts() == "deliver Conclude success: because");
    story t;
    t.ticks();
    t.knows(nothing());
    t.not_dialled(errc::refused);
    CHECK(t.agent_restarts() == "give_up: no route");
  }
}

TEST_SUITE("uplink_core: an actor that says everything again on a new link") {
  TEST_CASE("is told of each, after what had to wait for the welcome") {
    story s;
    const auto tells = [&s] {
      const auto effects = s.core.received(s.now, welcome());
      return !effects.empty() && std::holds_alternative<uplink_core::linked>(effects.back());
    };
    s.waits();
    s.knows({});
    s.dialled();
    CHECK(tells());
    CHECK_FALSE(tells());
    s.link_ends();
    s.waits();
    s.knows({});
    s.dialled();
    CHECK(tells());
  }
}
