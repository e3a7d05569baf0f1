#include "runtime/sup/shell.hpp"

#include "runtime/sup/testing/stage.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>

using namespace troupe;
using namespace troupe::sup;

namespace {

struct question {
  int n = 0;
};
struct hint {};
/// Outside every protocol here.
struct noise {};

} // namespace

TROUPE_LOCAL_MESSAGE(question)
TROUPE_LOCAL_MESSAGE(hint)
TROUPE_LOCAL_MESSAGE(noise)

namespace {

using oracle = protocol<ask<question>::yields<int>, tell<hint>>;

struct nothing {};

/// Answers 1 with 10, 2 later with 20 once hinted, refuses 3, throws at 4, answers 5 twice, never
/// answers the rest.
struct oracle_state {
  std::vector<promise<int>> open;
};

behavior_of<oracle> prophesy(self_of<oracle, oracle_state> self, const context& ctx) {
  harden(self, ctx);
  return {
      [self](describe) { return described(self, "musing"); },
      [self](const question& q) -> answer<int> {
        if (q.n == 1)
          return 10;
        if (q.n == 3)
          return fail(errc::overloaded, "too many questions");
        if (q.n == 5) {
          const auto p = promise_answer<int>(self);
          p.deliver(50);
          p.deliver(51);
          return p;
        }
        if (q.n == 4)
          throw std::runtime_error("struck by lightning");
        self->state.open.push_back(promise_answer<int>(self));
        return self->state.open.back();
      },
      [self](hint) {
        for (auto& p : self->state.open)
          p.deliver(20);
        self->state.open.clear();
      },
  };
}

using seeker = protocol<tell<question>>;

struct heard {
  std::vector<std::string> lines;
  bool inside_call = false;
};

behavior_of<seeker> seek(self_of<seeker, nothing> self, const context& ctx,
                         const address<oracle>& where, const std::shared_ptr<heard>& h) {
  harden(self, ctx);
  return {
      [self](describe) { return described(self, "seeking"); },
      [self, where, h](const question& q) {
        h->inside_call = true;
        request(
            self, where, 2s, q, [h](int n) { h->lines.push_back(std::to_string(n)); },
            [h](const error& e) {
              h->lines.push_back((h->inside_call ? "too early: " : "") +
                                 std::string(to_string(e.code)) + ": " + e.what);
            });
        h->inside_call = false;
      },
  };
}

/// An oracle and an actor that asks it.
struct delphi : stage {
  delphi() {
    play(one_for_one(
        "top", {9, 60s},
        {worker("oracle", restart::temporary, stop_within{1s}, pythia,
                [](context& ctx) { return ctx.spawn<oracle>(prophesy, ctx); }),
         worker("seeker", restart::permanent, stop_within{1s}, croesus, [this](context& ctx) {
           return ctx.spawn<seeker>(seek, ctx, pythia, said_to_seeker);
         })}));
  }

  std::string asked(int n) {
    said_to_seeker->lines.clear();
    CHECK(post(croesus, question{n}));
    settle();
    return heard_so_far();
  }

  std::string heard_so_far() const {
    return said_to_seeker->lines.empty() ? "nothing yet" : said_to_seeker->lines.front();
  }

  address<oracle> pythia;
  address<seeker> croesus;
  std::shared_ptr<heard> said_to_seeker = std::make_shared<heard>();
};

} // namespace

TEST_SUITE("shell") {
  TEST_CASE("a question is answered at once, later, or with an error that arrives unchanged") {
    delphi d;
    CHECK(d.asked(1) == "10");
    CHECK(d.asked(3) == "overloaded: too many questions");
    CHECK(d.asked(2) == "nothing yet");
    post(d.pythia, hint{});
    d.settle();
    CHECK(d.heard_so_far() == "20");
  }

  TEST_CASE("a question without an answer fails at its deadline, not before") {
    delphi d;
    CHECK(d.asked(2) == "nothing yet");
    d.pass(2s - 1ns);
    CHECK(d.heard_so_far() == "nothing yet");
    d.pass(1ns);
    CHECK(d.heard_so_far() == "unavailable: no answer in time");
  }

  TEST_CASE("a question to an empty address fails at once, though never inside the call") {
    delphi d;
    d.pythia.clear();
    CHECK(d.asked(1) == "closed: no actor is at this address");
  }

  TEST_CASE("a question to a dead actor fails at once") {
    delphi d;
    const auto dead = d.pythia.current();
    d.asked(4);
    d.pythia.bind(dead);
    CHECK(d.asked(1) == "closed: the receiver is down");
  }

  TEST_CASE("the question an actor dies of fails at once, with its last words") {
    delphi d;
    CHECK(d.asked(4) == "closed: struck by lightning");
  }

  TEST_CASE("questions that an actor leaves unanswered fail when it ends") {
    delphi d;
    CHECK(d.asked(2) == "nothing yet");
    d.asked(4);
    CHECK(d.said_to_seeker->lines ==
          std::vector<std::string>{"closed: struck by lightning",
                                   "closed: the receiver ended, or forgot the question"});
  }

  TEST_CASE("a promise is kept once") {
    delphi d;
    CHECK(d.asked(5) == "50");
    d.pass(5s);
    CHECK(d.said_to_seeker->lines.size() == 1);
  }

  TEST_CASE("sending to an empty address is told to the sender") {
    delphi d;
    d.pythia.clear();
    CHECK_FALSE(post(d.pythia, hint{}));
  }

  TEST_CASE(
      "a message outside the protocol is dropped, logged and counted, and the receiver lives on") {
    delphi d;
    const auto h = d.pythia.current();
    caf::anon_send(caf::actor_cast<caf::actor>(h), noise{});
    d.settle();
    CHECK(d.count("message_unexpected") == 1);
    CHECK(d.last("message_unexpected").component == "top/oracle");
    CHECK(d.asked(1) == "10");
    const auto r = d.report();
    REQUIRE(r);
    CHECK(r->children.at(0).unexpected == 1);
    CHECK(r->children.at(1).unexpected == 0);
  }

  TEST_CASE("every error survives its journey through CAF") {
    for (const auto code :
         {errc::invalid, errc::refused, errc::unavailable, errc::overloaded, errc::closed}) {
      const auto back = to_error(fail(code, "why"));
      CHECK(back.code == code);
      CHECK(back.what == "why");
    }
  }
}

TEST_SUITE("trees as data") {
  const auto leaf = [](const std::string& id) {
    return worker(id, restart::permanent, stop_within{1s}, address<oracle>{},
                  [](context& ctx) { return ctx.spawn<oracle>(prophesy, ctx); });
  };

  TEST_CASE("a tree that cannot be right is rejected with one line before anything starts") {
    const auto says = [](const tree& t) {
      const auto r = validate(t);
      return r ? std::string("fine") : r.error().what;
    };
    CHECK(says(one_for_one("top", {1, 1s}, {leaf("a"), leaf("b")})) == "fine");
    CHECK(says(leaf("a")) == "a: a tree begins with a supervisor");
    CHECK(says(one_for_one("", {1, 1s}, {})) == "the root: a child without an id");
    CHECK(says(one_for_one("top", {1, 1s}, {leaf("a"), leaf("")})) == "top: a child without an id");
    CHECK(says(one_for_one("top", {1, 1s}, {leaf("a/b")})) == "top: the id a/b contains a slash");
    CHECK(says(one_for_one("top", {1, 1s}, {leaf("a"), leaf("a")})) ==
          "top: two children called a");
    CHECK(says(one_for_one("top", {1, 0s}, {})) == "top: a restart budget without a period");
    CHECK(says(one_for_one("top", {1, 1s}, {one_for_all("group", {1, 0s}, {})})) ==
          "top/group: a restart budget without a period");
    CHECK(says(one_for_one("top", {1, 1s},
                           {worker("a", restart::permanent, stop_within{0s}, address<oracle>{},
                                   [](context& ctx) {
                                     return ctx.spawn<oracle>(prophesy, ctx);
                                   })})) == "top/a: no time to stop");
    CHECK(says(one_for_one("top", {1, 1s}, {leaf(std::string(300, 'x'))})) ==
          "top: an id of 300 characters");
  }

  TEST_CASE("a tree that is not valid is not started") {
    simulated_engine engine;
    CHECK_THROWS_AS(spawn_root(engine.system(), leaf("a"), {}, {}), const invariant_broken&);
  }

  TEST_CASE("a tree reads as an outline") {
    const auto t =
        rest_for_one("master", {1, 1s},
                     {leaf("journal"), dynamic("sessions", {1, 1s}, address<dynamic_handle>{}),
                      one_for_all("group", {1, 1s}, {leaf("x")}).as(restart::transient)});
    CHECK(outline(t) == "master rest_for_one\n"
                        "  journal worker permanent\n"
                        "  sessions dynamic permanent\n"
                        "  group one_for_all transient\n"
                        "    x worker permanent\n");
  }
}
