#include "actors/master/membership/membership_core.hpp"

#include "runtime/base/limits.hpp"
#include "tests/actors/vocabulary.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

/// A master's membership as its decisions show it.
struct story {
  membership_core core{membership_options{"job", 3s, 6s, 11s, 60s, 1s},
                       messages::author("master/membership"), dawn};
  instant now = dawn;

  std::string comes(const node_name& node, std::uint64_t which, std::uint64_t session) {
    return text(core.hello(now, session_id{session}, hello(node, which)));
  }
  /// As comes(), of a node that a master has told something before.
  std::string is_back(const node_name& node, std::uint64_t which, std::uint64_t session) {
    return text(core.hello(now, session_id{session},
                           hello(node, which, [](auto b) { b.initState().setGeneration(1); })));
  }
  std::string link_ends(std::uint64_t session, const std::string& why = "reset by peer") {
    return text(core.closed(now, session_id{session}, {ports::link_end::closed, why}));
  }
  std::string falls_silent(std::uint64_t session) {
    return text(core.closed(now, session_id{session},
                            {ports::link_end::silent, "nothing heard for 1.5 s"}));
  }
  /// And so does everybody else.
  std::string is_isolated_from(std::uint64_t session) {
    return text(core.closed(now, session_id{session},
                            {ports::link_end::isolated, "nothing heard for 1.5 s"}));
  }
  std::string passes(duration d) {
    now += d;
    return text(core.tick(now));
  }
};

} // namespace

TEST_SUITE("membership_core") {
  TEST_CASE("a node that says hello is welcomed and announced with all it said") {
    story s;
    const auto m = hello("a", 7, [](messages::Hello::Builder b) {
      b.setSlots(8);
      b.setWantedRank(3);
      b.setWorkerRole("reader");
      b.setBulkPort(4713);
      b.initSwitches(2).set(1, "leaf-7");
      b.initMachine(1).set(0, "gpu-4");
      b.initState().setGeneration(5);
    });
    const auto effects = s.core.hello(s.now, session_id{1}, m);
    CHECK(text(effects) == lines("announce NodePresent a idle g5", "welcome 1"));
    const auto* announced = std::get_if<membership_core::announce>(&effects[0]);
    REQUIRE(announced);
    auto p = announced->message.as<messages::NodePresent>().read();
    CHECK(p->getIncarnation() == 7);
    CHECK(p->getAddress() == "a.lan");
    CHECK(p->getSlots() == 8);
    CHECK(p->getWantedRank() == 3);
    CHECK(p->getWorkerRole() == "reader");
    CHECK(p->getBulkPort() == 4713);
    REQUIRE(p->getSwitches().size() == 2);
    CHECK(p->getSwitches()[1] == "leaf-7");
    CHECK(p->getMachine()[0] == "gpu-4");
    CHECK(s.core.session_of("a") == session_id{1});
  }

  TEST_CASE("a welcome names the job and the beat") {
    story s;
    const auto effects = s.core.hello(s.now, session_id{1}, hello("a"));
    auto w = std::get<membership_core::welcome>(effects[1]).message.read();
    CHECK(w->getJob() == "job");
    CHECK(w->getBeatEveryMs() == 1000);
  }

  TEST_CASE("a node of an older Troupe is refused by name: it would never get ready") {
    story s;
    CHECK(text(s.core.hello(
              s.now, session_id{1},
              hello("a", 7, [](auto b) { b.setRevision(messages::protocol_revision - 1); }))) ==
          "refuse 1: its Troupe is older than this master's: install the same version on all "
          "nodes");
  }

  TEST_CASE("a node that has followed a newer master is left to it") {
    story s;
    s.core =
        membership_core({"job", 3s, 6s, 1s}, messages::author("master/membership", term{4}), dawn);
    const auto hello_after = [&s](term followed) {
      const auto m = messages::author("a/uplink", followed)
                         .write<messages::Hello>({}, [](messages::Hello::Builder b) {
                           b.setJob("job");
                           b.setNode("a");
                           b.setIncarnation(7);
                           b.setSlots(1);
                           b.setRevision(messages::protocol_revision);
                         });
      return text(s.core.hello(s.now, session_id{followed.value}, m));
    };
    CHECK(hello_after(term{5}) ==
          "refuse 5 for now: it has followed a newer master (term 5) than this one (term 4)");
    CHECK(s.core.session_of("a") == std::nullopt);
    CHECK(hello_after(term{4}) == lines("announce NodePresent a idle g0", "welcome 4"));
  }

  TEST_CASE("a node of another job is refused and leaves no trace") {
    story s;
    const auto m = hello("a", 1, [](auto b) { b.setJob("other"); });
    CHECK(text(s.core.hello(s.now, session_id{1}, m)) ==
          "refuse 1: this master serves job 'job', not 'other' (--rdzv-id)");
    CHECK(s.core.session_of("a") == std::nullopt);
    CHECK(s.link_ends(1) == "");
  }

  TEST_CASE("a node that calls the job otherwise is taken where the master has made its pod") {
    membership_options o{"job"};
    o.any_name = true;
    membership_core core(o, messages::author("master/membership"), dawn);
    core.hello(dawn, session_id{1}, hello("a", 1, [](auto b) { b.setJob("other"); }));
    CHECK(core.session_of("a") == session_id{1});
  }

  TEST_CASE(
      "a node that was told another size of the job is refused, one that was told none is not") {
    story s;
    s.core = membership_core({"job", 3s, 6s, 11s, 60s, 1s, 2, 4},
                             messages::author("master/membership"), dawn);
    const auto told = [&s](const std::string& node, std::uint32_t low, std::uint32_t high) {
      return text(s.core.hello(s.now, session_id{1}, hello(node, 1, [low, high](auto b) {
                                 b.setNodesMin(low);
                                 b.setNodesMax(high);
                               })));
    };
    CHECK(told("a", 4, 4) ==
          "refuse 1: this master's job has 2 to 4 nodes, the node was told 4 nodes (--nnodes)");
    CHECK(told("a", 1, 4).find("refuse 1") == 0);
    CHECK(told("a", 2, 4).find("welcome 1") != std::string::npos);
    CHECK(told("b", 0, 0).find("welcome 1") != std::string::npos);
  }

  TEST_CASE("names and slots outside the limits are refused") {
    story s;
    CHECK(s.comes("", 1, 1) == "refuse 1: a node's name has 1 to 200 bytes");
    CHECK(s.comes(std::string(201, 'x'), 1, 1) == "refuse 1: a node's name has 1 to 200 bytes");
    const auto longest = hello(std::string(200, 'x'), 1, [](auto b) { b.setAddress("10.0.0.1"); });
    CHECK(text(s.core.hello(s.now, session_id{1}, longest)).find("welcome 1") != std::string::npos);
    const auto with_address = [&](std::size_t bytes) {
      const std::string address(bytes, '1');
      return text(s.core.hello(s.now, session_id{2},
                               hello("a", 1, [&address](auto b) { b.setAddress(address); })));
    };
    CHECK(with_address(256) ==
          "refuse 2: its address has 256 bytes; 255 are possible (--local-addr)");
    CHECK(with_address(255).find("welcome 2") != std::string::npos);
    const auto with_slots = [&](std::uint32_t n) {
      return text(
          s.core.hello(s.now, session_id{2}, hello("a", 1, [n](auto b) { b.setSlots(n); })));
    };
    CHECK(with_slots(0) ==
          "refuse 2: 0 processes on one node; 1 to 1024 are possible (--nproc-per-node)");
    CHECK(with_slots(1025).find("refuse 2: 1025 processes") == 0);
    CHECK(with_slots(1024).find("welcome 2") != std::string::npos);
  }

  TEST_CASE("a node whose connection is closed is away at once, and lost if it is not soon back") {
    story s;
    s.comes("a", 1, 1);
    CHECK_FALSE(s.core.next_wakeup());
    CHECK(s.link_ends(1) == "announce NodeAway a: reset by peer");
    CHECK(s.core.session_of("a") == std::nullopt);
    CHECK(s.core.next_wakeup() == dawn + 3s);
    CHECK(s.passes(3s - 1ns) == "");
    CHECK(s.passes(1ns) == "announce NodeLost a: reset by peer, and it was not back within 3.0 s");
    CHECK_FALSE(s.core.next_wakeup());
    CHECK(s.passes(1h) == "");
  }

  TEST_CASE("a node that was silent is lost at once, and refused as it was") {
    story s;
    s.comes("a", 1, 1);
    CHECK(s.falls_silent(1) == "announce NodeLost a: nothing heard for 1.5 s");
    CHECK_FALSE(s.core.next_wakeup());
    CHECK(s.core.session_of("a") == std::nullopt);
    CHECK(s.comes("a", 1, 2) == "refuse 2 for now: nothing heard for 1.5 s");
    CHECK(s.comes("a", 2, 3).find("welcome 3") != std::string::npos);
  }

  TEST_CASE("the silence of a link that was replaced means nothing") {
    story s;
    s.comes("a", 1, 1);
    s.comes("a", 1, 2);
    CHECK(s.falls_silent(1) == "");
    CHECK(s.core.session_of("a") == session_id{2});
  }

  TEST_CASE("a node that may have waited for this master has longer to come back") {
    story s;
    s.comes("a", 1, 1);
    CHECK(text(s.core.closed(s.now, session_id{1}, {ports::link_end::paused_here, "eof"})) ==
          "announce NodeAway a: eof");
    CHECK(s.core.next_wakeup() == dawn + 6s);
    CHECK(s.passes(6s - 1ns) == "");
    CHECK(s.passes(1ns) == "announce NodeLost a: eof, and it was not back within 6.0 s");
  }

  TEST_CASE("a master that hears no node loses none, until they are back") {
    story s;
    s.comes("a", 1, 1);
    s.comes("b", 1, 2);
    CHECK(s.is_isolated_from(1) == "announce NodeAway a: nothing heard for 1.5 s");
    CHECK(s.passes(100ms) == "");
    CHECK(s.is_isolated_from(2) == "announce NodeAway b: nothing heard for 1.5 s");
    CHECK(s.passes(59s) == "");
    SUBCASE("both come back, and nothing has happened") {
      CHECK(s.comes("b", 1, 3) == lines("announce NodePresent b idle g0", "welcome 3"));
      CHECK(s.passes(100ms) == "");
      CHECK(s.comes("a", 1, 4) == lines("announce NodePresent a idle g0", "welcome 4"));
      CHECK_FALSE(s.core.next_wakeup());
    }
    SUBCASE("neither does") {
      CHECK(s.passes(900ms) ==
            "announce NodeLost a: nothing heard for 1.5 s, and it was not back within 60.0 s");
      CHECK(s.passes(100ms) ==
            "announce NodeLost b: nothing heard for 1.5 s, and it was not back within 60.0 s");
    }
  }

  TEST_CASE("once one is back, the time of the others that were not heard runs") {
    story s;
    s.comes("a", 1, 1);
    s.comes("b", 1, 2);
    s.is_isolated_from(1);
    s.is_isolated_from(2);
    s.passes(20s);
    s.comes("b", 1, 3);
    CHECK(s.passes(11s - 1ns) == "");
    CHECK(s.passes(1ns) ==
          "announce NodeLost a: nothing heard for 1.5 s, and it was not back within 31.0 s");
    CHECK(s.passes(1h) == "");
  }

  TEST_CASE("a node that is there all the time does not prolong the time of one that is not") {
    story s;
    s.comes("a", 1, 1);
    s.comes("b", 1, 2);
    s.is_isolated_from(1);
    CHECK(s.core.next_wakeup() == dawn + 11s);
    // Of a connection that was closed something was heard.
    s.link_ends(2);
    CHECK(s.core.next_wakeup() == dawn + 3s);
  }

  TEST_CASE("a node that flaps has to wait, and hears how long; its master's other nodes do not") {
    story s;
    std::uint64_t which = 0;
    const auto flap = [&s, &which] {
      ++which;
      s.comes("a", which, which);
      s.falls_silent(which);
    };
    flap();
    flap();
    CHECK(s.comes("a", 90, 90).find("welcome 90") != std::string::npos);
    s.falls_silent(90);
    const auto refusal = s.core.hello(s.now, session_id{91}, hello("a", 91));
    CHECK(text(refusal) == "refuse 91 for now: it was lost again and again; it may join in 1.0 s");
    CHECK(std::get<membership_core::refuse>(refusal[0]).message.read()->getRetryAfterMs() == 1000);
    CHECK(s.comes("b", 1, 92).find("welcome 92") != std::string::npos);
    s.now += 1s;
    CHECK(s.comes("a", 93, 93).find("welcome 93") != std::string::npos);
    // A return of the same is no flapping.
    s.link_ends(93);
    CHECK(s.comes("a", 93, 94).find("welcome 94") != std::string::npos);
  }

  TEST_CASE(
      "a node that leaves on purpose does not flap, and none has to wait once the job is over") {
    story s;
    for (std::uint64_t i = 1; i <= 20; ++i) {
      REQUIRE(s.comes("a", i, i).find("welcome") != std::string::npos);
      s.core.departed(s.now, session_id{i}, "interrupted");
    }
    for (std::uint64_t i = 21; i <= 23; ++i) {
      s.comes("a", i, i);
      s.falls_silent(i);
    }
    REQUIRE(s.comes("a", 30, 30).find("refuse") == 0);
    s.core.job_over(s.now);
    CHECK(s.is_back("a", 31, 31).find("welcome") != std::string::npos);
  }

  TEST_CASE("a first master whose job is over goes as soon as everyone has left") {
    story s;
    s.comes("a", 1, 1);
    CHECK(text(s.core.job_over(s.now)) == "");
    CHECK(text(s.core.departed(s.now, session_id{1}, "done")).find("everyone left") !=
          std::string::npos);
    CHECK_FALSE(s.core.next_wakeup());
    CHECK(s.passes(1h) == "");
  }

  TEST_CASE(
      "a later master waits for nodes that have not found it yet and tells them: the job is over") {
    story s;
    const messages::author later("master/membership", term{2});
    membership_options options{"job", 3s, 6s, 11s, 60s, 1s, 1, 4};
    options.has_predecessor = true;
    s.core = membership_core(options, later, s.now);
    s.comes("a", 1, 1);
    s.now += 1s;
    s.core.job_over(s.now);
    CHECK(text(s.core.departed(s.now, session_id{1}, "done")).find("everyone left") ==
          std::string::npos);
    CHECK(s.core.next_wakeup() == dawn + 6s);
    s.now += 3s;
    CHECK(s.is_back("standby", 2, 2).find("welcome 2") != std::string::npos);
    CHECK(text(s.core.departed(s.now, session_id{2}, "done")).find("everyone left") ==
          std::string::npos);
    CHECK(s.passes(2s) == "everyone left");
    CHECK(s.passes(1h) == "");

    // A job of one node has no other nodes.
    s.core = membership_core({"job", 3s, 6s, 11s, 60s, 1s, 1, 1}, later, s.now);
    CHECK(text(s.core.job_over(s.now)) == "everyone left");
  }

  TEST_CASE("a node that returns in time goes on as the same") {
    story s;
    s.comes("a", 1, 1);
    s.link_ends(1);
    s.passes(2s);
    CHECK(s.comes("a", 1, 2) == lines("announce NodePresent a idle g0", "welcome 2"));
    CHECK(s.passes(1h) == "");
    CHECK(s.core.session_of("a") == session_id{2});
  }

  TEST_CASE("each absence has a time of its own") {
    story s;
    s.comes("a", 1, 1);
    s.link_ends(1);
    s.passes(2s);
    s.comes("a", 1, 2);
    s.link_ends(2);
    CHECK(s.passes(2s) == "");
    CHECK(s.passes(1s) != "");
  }

  TEST_CASE("the nearest end of an absence is the next wakeup") {
    story s;
    s.comes("a", 1, 1);
    s.comes("b", 1, 2);
    s.link_ends(2);
    s.passes(1s);
    s.link_ends(1);
    CHECK(s.core.next_wakeup() == dawn + 3s);
    CHECK(s.passes(2s) == "announce NodeLost b: reset by peer, and it was not back within 3.0 s");
    CHECK(s.core.next_wakeup() == dawn + 4s);
  }

  TEST_CASE(
      "a second link of the same incarnation replaces the first, whose end then means nothing") {
    story s;
    s.comes("a", 1, 1);
    CHECK(s.comes("a", 1, 2) == lines("fence 1: the node has a newer link",
                                      "announce NodePresent a idle g0", "welcome 2"));
    CHECK(s.link_ends(1) == "");
    CHECK(s.core.session_of("a") == session_id{2});
  }

  TEST_CASE("a lost node is refused as it was, and welcome as a new incarnation") {
    story s;
    s.comes("a", 1, 1);
    s.link_ends(1);
    s.passes(3s);
    CHECK(s.comes("a", 1, 2) ==
          "refuse 2 for now: reset by peer, and it was not back within 3.0 s");
    CHECK(s.comes("a", 2, 3) == lines("announce NodePresent a idle g0", "welcome 3"));
  }

  TEST_CASE("a node that says goodbye is lost at once") {
    story s;
    s.comes("a", 1, 1);
    CHECK(text(s.core.departed(s.now, session_id{1}, "interrupted")) ==
          lines("fence 1: interrupted", "announce NodeLost a: interrupted"));
    CHECK(s.link_ends(1) == "");
    CHECK_FALSE(s.core.next_wakeup());
  }

  TEST_CASE("a goodbye through a link that was replaced means nothing") {
    story s;
    s.comes("a", 1, 1);
    s.comes("a", 1, 2);
    CHECK(text(s.core.departed(s.now, session_id{1}, "interrupted")) == "");
    CHECK(s.core.session_of("a") == session_id{2});
  }

  TEST_CASE("an evicted node hears why; whether it may come back is the master's choice") {
    story s;
    s.comes("a", 1, 1);
    CHECK(text(s.core.evict(s.now, "a", "too slow", true)) ==
          lines("refuse 1 for now: too slow", "announce NodeLost a: too slow"));
    CHECK(s.comes("a", 1, 2) == "refuse 2 for now: too slow");
    CHECK(s.comes("a", 2, 3).find("welcome 3") != std::string::npos);
    CHECK(text(s.core.evict(s.now, "a", "rank taken", false)).find("refuse 3: rank taken") == 0);
    CHECK(s.comes("a", 2, 4) == "refuse 4: rank taken");
  }

  TEST_CASE("a member that begins behind the loss of its node is told of it") {
    story s;
    s.comes("a", 1, 1);
    CHECK_FALSE(s.core.gone_already("a", incarnation{1}));
    CHECK_FALSE(s.core.gone_already("a", incarnation{}));
    CHECK(s.core.gone_already("a", incarnation{2}));
    s.link_ends(1);
    CHECK_FALSE(s.core.gone_already("a", incarnation{1}));
    s.passes(3s);
    CHECK(s.core.gone_already("a", incarnation{1}));
    const auto lost = s.core.gone_already("unknown", incarnation{});
    REQUIRE(lost);
    CHECK(lost->read()->getNode() == "unknown");
  }

  TEST_CASE("a reason that is in the log already is there in short; the node hears all of it") {
    story s;
    s.comes("a", 1, 1);
    const auto said = text(
        s.core.evict(s.now, "a", "node a is faulty: this and that", false, "it was found faulty"));
    CHECK(said.find("refuse 1: node a is faulty: this and that") != std::string::npos);
    CHECK(said.find("announce NodeLost a: it was found faulty") != std::string::npos);
    CHECK(s.comes("a", 1, 2) == "refuse 2: node a is faulty: this and that");
  }

  TEST_CASE("an evicted node that is away hears why when it comes back") {
    story s;
    s.comes("a", 1, 1);
    s.link_ends(1);
    CHECK(text(s.core.evict(s.now, "a", "too slow", true)) == "announce NodeLost a: too slow");
    CHECK(s.comes("a", 1, 2) == "refuse 2 for now: too slow");
  }

  TEST_CASE("evicting an unknown node does nothing") {
    story s;
    CHECK(text(s.core.evict(s.now, "unknown", "x", true)) == "");
  }

  TEST_CASE("a node that is present is listed by name with its session; one that is away is not") {
    story s;
    s.comes("b", 1, 1);
    s.comes("a", 1, 2);
    s.comes("c", 1, 3);
    s.link_ends(1);
    const auto all = s.core.present();
    REQUIRE(all.size() == 2);
    CHECK(all[0] == std::pair<node_name, session_id>("a", 2));
    CHECK(all[1] == std::pair<node_name, session_id>("c", 3));
    CHECK(s.core.in_words() == "2 present, 1 away");
  }

  TEST_CASE("a full job refuses newcomers for now and lets its own come back") {
    story s;
    for (std::uint32_t i = 0; i < limits::nodes_max; ++i)
      s.core.hello(s.now, session_id{i + 1}, hello("n" + std::to_string(i)));
    CHECK(s.comes("one-more", 1, 99'999) ==
          "refuse 99999 for now: the job has 16384 nodes already, the most there can be");
    CHECK(s.comes("n0", 1, 99'999).find("fence 1: ") == 0);
  }

  TEST_CASE("only so many lost incarnations are remembered, the oldest is forgotten first") {
    story s;
    for (std::uint64_t i = 1; i <= limits::nodes_max + 1; ++i) {
      s.comes("a", i, i);
      s.core.departed(s.now, session_id{i}, "bye");
    }
    CHECK(s.comes("a", 2, 99'998) == "refuse 99998 for now: bye");
    CHECK(s.comes("a", 1, 99'999).find("welcome 99999") != std::string::npos);
  }

  TEST_CASE("what people read tells which node went and how long it may stay away") {
    story s;
    s.comes("a", 1, 1);
    CHECK(
        notes(s.core.closed(s.now, session_id{1}, {ports::link_end::closed, "reset by peer"})) ==
        "node a has lost its link (reset by peer); if it is not back within 3.0 s, the job goes on "
        "without it");
    CHECK(notes(s.core.hello(s.now, session_id{2}, hello("a"))) == "node a is back");
  }
}
