#include "tests/sim/cluster.hpp"

#include "tests/sim/checkers/checkers.hpp"
#include "tests/sim/run.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::sim;

namespace {

messages::any_msg prepare(std::uint64_t which, const std::string& node, std::uint32_t first_rank) {
  return messages::build<messages::Prepare>({"", {}, generation{which}},
                                            [&](auto b) {
                                              auto me = b.initSeat().initMember();
                                              me.setNode(node);
                                              me.setFirstRank(first_rank);
                                            })
      .any();
}

struct seated {
  std::string node;
  std::uint32_t group_rank;
  std::uint32_t first_rank;
};

/// Everybody has one slot.
messages::any_msg sealed(std::uint64_t which, const std::vector<seated>& seats,
                         std::uint32_t size) {
  return messages::build<messages::GenerationSealed>(
             {"", {}, generation{which}},
             [&](auto b) {
               auto w = b.initWorld();
               w.setGeneration(which);
               w.setWorldSize(size);
               auto members = w.initMembers(static_cast<unsigned>(seats.size()));
               for (unsigned i = 0; i < seats.size(); ++i) {
                 members[i].setNode(seats[i].node);
                 members[i].setSlots(1);
                 members[i].setGroupRank(seats[i].group_rank);
                 members[i].setFirstRank(seats[i].first_rank);
               }
             })
      .any();
}

messages::any_msg counted(std::uint64_t which, std::uint32_t count) {
  return messages::build<messages::RestartCounted>({"", {}, generation{which}},
                                                   [&](auto b) {
                                                     b.setGeneration(which);
                                                     b.setRestartCount(count);
                                                   })
      .any();
}

messages::any_msg start(std::uint64_t which) {
  return messages::build<messages::Start>({"", {}, generation{which}}, [](auto) {}).any();
}

process_record process_of(const std::string& node, std::uint64_t which) {
  process_record p;
  p.node = node;
  p.which = generation{which};
  return p;
}

} // namespace

TEST_CASE("two nodes join, train and finish, and nothing is left of them") {
  cluster_options o;
  o.nodes = o.nodes_min = o.nodes_max = 2;
  o.slots = 2;
  cluster c(o);
  c.start_everything();
  c.run_for(60s, [&c] { return c.over(); });
  REQUIRE(c.over());
  CHECK(c.verdict()->success);
  CHECK(c.training().all().size() == 4);
  CHECK(c.training().alive() == 0);
  CHECK(c.outcomes().at("n1").success);
  CHECK(c.outcomes().at("n2").success);
}

namespace {

/// Two nodes of two ranks that may not fail once, and everybody watches.
struct crashing_job : cluster {
  crashing_job() : cluster(options()) {
    all().observers = checkers::all(all(), training(), 0, {2, 2, 1, {}}, limits::lease);
    start_everything();
    run_for(10s, [this] { return training().training(); });
    REQUIRE(training().training());
  }

  static cluster_options options() {
    cluster_options o;
    o.nodes = o.nodes_min = o.nodes_max = o.slots = 2;
    o.max_restarts = 0;
    return o;
  }

  void goes_on_to_its_end(std::size_t processes) {
    run_for(60s, [this] { return over(); });
    REQUIRE_MESSAGE(!all().broken, all().broken->what);
    REQUIRE(over());
    CHECK(verdict()->success);
    CHECK(training().all().size() == processes);
    CHECK(training().alive() == 0);
  }
};

} // namespace

TEST_CASE("node supervisors that crash are not noticed by their workers") {
  crashing_job c;
  for (const auto* node : {"n1", "n2", "n1"}) {
    c.crash_supervisor(node, 20ms);
    c.run_for(2s);
    CHECK(c.training().training());
  }
  c.goes_on_to_its_end(4);
}

TEST_CASE("neither are both of them and the master, all at once") {
  crashing_job c;
  c.crash(cluster::master_name(), ending_kind::killed);
  c.crash_supervisor("n1", 20ms);
  c.crash_supervisor("n2", 30ms);
  c.run_for(40ms);
  c.start_master();
  c.goes_on_to_its_end(4);
}

TEST_CASE("ends that came while there was no supervisor are the next one's to tell") {
  crashing_job c;
  c.run_for(60s, [&c] { return c.training().progress() == c.training().options().training; });
  c.crash_supervisor("n1", 200ms);
  c.goes_on_to_its_end(4);
}

TEST_CASE("a master that cannot be reached for a while is not noticed by workers") {
  crashing_job c;
  for (const auto* node : {"n1", "n2"}) {
    c.net().hold(node, cluster::master_name());
    c.net().hold(cluster::master_name(), node);
  }
  c.run_for(10s);
  CHECK(c.training().training());
  c.net().calm();
  c.goes_on_to_its_end(4);
}

TEST_CASE("a master without the journal uses no number of the generations that still run") {
  cluster_options o;
  o.nodes = o.nodes_max = 4;
  o.nodes_min = 2;
  o.trainers.training = 30s;
  cluster c(o);
  c.all().observers = {checkers::one_world_per_generation(c.all()),
                       checkers::actors_are_sound(c.all()),
                       checkers::processes_follow_the_generation(c.all(), c.training()),
                       checkers::start_after_prepared(c.all())};
  c.start_everything();
  c.run_for(10s, [&c] { return c.training().training(); });
  c.crash(cluster::master_name(), ending_kind::power_cut);
  c.disk().lose();
  // Of the nodes that know of a generation none is heard, and others come in the place of the rest.
  for (const auto* node : {"n1", "n2"}) {
    c.net().hold(node, cluster::master_name());
    c.net().hold(cluster::master_name(), node);
  }
  for (const auto* node : {"n3", "n4"}) {
    c.crash(node, ending_kind::power_cut);
    c.start_node(node);
  }
  c.start_master();
  c.run_for(10s);
  REQUIRE_MESSAGE(!c.all().broken, c.all().broken->what);
  CHECK(c.training().training());
  c.net().calm();
  c.run_for(120s, [&c] { return c.over(); });
  REQUIRE_MESSAGE(!c.all().broken, c.all().broken->what);
  REQUIRE(c.over());
  CHECK(c.verdict()->success);
}

TEST_CASE("a node that lost its place while away ends what it runs, though that would never end") {
  cluster_options o;
  o.nodes = 4;
  o.nodes_min = o.nodes_max = 2;
  o.slots = 1;
  o.trainers.training = 40s;
  o.trainers.hangs = 1;
  cluster c(o);
  c.all().observers = checkers::all(c.all(), c.training(), 0, {2, 2, 1, {}});
  c.start_everything();
  c.run_for(10s, [&c] { return c.training().training(); });
  c.run_for(1s);
  const auto runs_on = [&c](global_rank rank) {
    return c.training().all().at(*c.training().find(rank) - 1).node;
  };
  const auto away = runs_on(0);
  c.pause(runs_on(1));
  c.run_for(1300ms);
  c.net().break_links(away);
  c.net().refuse_dials(cluster::master_name(), c.now() + 800ms);
  c.run_for(30s);
  REQUIRE_MESSAGE(!c.all().broken, c.all().broken->what);
  CHECK(c.training().training());
  CHECK(c.training().alive_on(away) == 0);
}

TEST_CASE("a node that leaves while its generation is proposed does not hold up the others") {
  cluster_options o;
  o.nodes = o.nodes_max = 3;
  o.nodes_min = 2;
  o.trainers.training = 60s;
  cluster c(o);
  c.start_everything();
  c.run_for(10s, [&c] { return c.training().training(); });
  REQUIRE(c.training().training());
  // The proposal waits for the journal, and its members begin behind the loss.
  c.disk().append_min = c.disk().append_max = 500ms;
  c.training().exit(*c.training().find(0), {false, 7});
  c.run_for(100ms);
  REQUIRE(c.training().alive() == 0);
  c.interrupt("n1", SIGINT);
  c.run_for(5s);
  CHECK(c.training().training());
  CHECK(c.training().alive() == 2);
}

TEST_CASE("a supervisor that takes too long is given up, and the next one ends what it finds") {
  crashing_job c;
  c.crash_supervisor("n2", 3s);
  c.goes_on_to_its_end(8);
}

TEST_CASE("a launcher that is killed before its supervisor is back takes its workers with it") {
  crashing_job c;
  c.crash_supervisor("n2", 1s);
  c.run_for(100ms);
  CHECK(c.training().alive_on("n2") == 2);
  c.crash("n2", ending_kind::killed);
  CHECK(c.training().alive_on("n2") == 0);
  c.run_for(2s);
  CHECK_FALSE(c.up("n2"));
}

TEST_CASE("the same seed gives the same story, another seed another one") {
  const auto digest_of = [](std::uint64_t seed) {
    run_options o;
    o.seed = seed;
    return run(o).digest;
  };
  CHECK(digest_of(11) == digest_of(11));
  CHECK(digest_of(11) != digest_of(12));
}

TEST_CASE("a checker blames what breaks its invariant") {
  world w(1);
  trainers t(w, {});
  w.observers = checkers::all(w, t, 0, {1, 4, 1, {}});
  // By itself: the checkers of what a Start needs would blame these first.
  const auto ranks = checkers::ranks_are_stable(w);
  const auto world_starts = [&ranks](std::uint64_t which, const std::vector<seated>& seats) {
    ranks->recorded(sealed(which, seats, static_cast<std::uint32_t>(seats.size())));
    ranks->sent("master", "a", start(which));
  };
  SUBCASE("a generation with two worlds") {
    w.tell(&observer::sent, std::string("master"), std::string("n1"), prepare(1, "a", 0));
    w.tell(&observer::sent, std::string("master"), std::string("n2"), prepare(1, "b", 1));
    CHECK_FALSE(w.broken);
    w.tell(&observer::sent, std::string("master"), std::string("n2"), prepare(1, "b", 2));
    CHECK(w.broken->invariant == "one_world_per_generation");
  }
  SUBCASE("ranks with a gap") {
    w.tell(&observer::recorded, sealed(1, {{"a", 0, 0}, {"b", 1, 2}}, 3));
    CHECK(w.broken->invariant == "ranks_are_dense");
  }
  SUBCASE("a survivor that loses its rank") {
    world_starts(1, {{"a", 0, 0}, {"b", 1, 1}});
    world_starts(2, {{"c", 0, 0}, {"b", 1, 1}});
    // This one is not started.
    ranks->recorded(sealed(3, {{"c", 0, 0}, {"d", 1, 1}}, 2));
    ranks->recorded(sealed(4, {{"d", 0, 0}, {"b", 1, 1}}, 2));
    CHECK_FALSE(w.broken);
    ranks->recorded(sealed(5, {{"b", 0, 0}, {"d", 1, 1}}, 2));
    CHECK(w.broken->invariant == "ranks_are_stable");
  }
  SUBCASE("survivors that change places when the world shrinks") {
    world_starts(1, {{"a", 0, 0}, {"b", 1, 1}, {"c", 2, 2}});
    ranks->recorded(sealed(2, {{"c", 0, 0}, {"b", 1, 1}}, 2));
    CHECK(w.broken->invariant == "ranks_are_stable");
  }
  SUBCASE("a world larger than allowed") {
    w.tell(&observer::recorded,
           sealed(1, {{"a", 0, 0}, {"b", 1, 1}, {"c", 2, 2}, {"d", 3, 3}, {"e", 4, 4}}, 5));
    CHECK(w.broken->invariant == "worlds_fit_the_sizes");
  }
  SUBCASE("a process of a generation its node has not prepared") {
    w.tell(&observer::process_started, process_of("a", 2));
    CHECK(w.broken->invariant == "processes_follow_the_generation");
  }
  SUBCASE("a start before everybody was prepared") {
    w.tell(&observer::recorded, sealed(1, {{"a", 0, 0}}, 1));
    w.tell(&observer::sent, std::string("master"), std::string("a"), start(1));
    CHECK(w.broken->invariant == "start_after_prepared");
  }
  SUBCASE("one restart too many") {
    w.tell(&observer::recorded, counted(1, 1));
    CHECK(w.broken->invariant == "restarts_within_budget");
  }
  SUBCASE("an answer to nothing") {
    w.tell(&observer::answered, std::uint64_t{7});
    CHECK(w.broken->invariant == "questions_are_answered");
  }
  SUBCASE("a question that is never answered") {
    w.tell(&observer::asked, std::uint64_t{7}, std::string("a"), std::string("it"), instant{} + 1s);
    w.tell(&observer::time_passed, instant{} + 1s);
    CHECK(w.broken->invariant == "questions_are_answered");
  }
  SUBCASE("a queue past its bound") {
    w.tell(&observer::link_load, std::string("a"), limits::send_queue_max + 1, std::size_t{0});
    CHECK(w.broken->invariant == "queues_are_bounded");
  }
  SUBCASE("an actor that threw") {
    w.tell(&observer::said, std::string("a"), std::string("agent"),
           log::event{log::level::error, "actor_threw", "oh", {}});
    CHECK(w.broken->invariant == "actors_are_sound");
  }
  SUBCASE("a node that paused a little and was taken for dead") {
    w.tell(&observer::froze, std::string("n1"));
    w.events.pass(instant{} + limits::lease / 2);
    w.tell(&observer::thawed, std::string("n1"));
    w.tell(&observer::link_ended, std::string("master"), std::string("n1"), std::uint64_t{1},
           ports::link_end::silent);
    CHECK(w.broken->invariant == "pauses_are_forgiven");
  }
  SUBCASE("a silent node that is not given up") {
    w.tell(&observer::link_opened, std::string("master"), std::string("n1"), std::uint64_t{1});
    w.tell(&observer::way_cut, std::string("n1"), std::string("master"));
    w.tell(&observer::time_passed, instant{} + limits::lease);
    CHECK_FALSE(w.broken);
    w.tell(&observer::time_passed, instant{} + 2 * limits::lease);
    CHECK(w.broken->invariant == "silence_is_noticed");
  }
  SUBCASE("a record after the verdict") {
    w.tell(&observer::recorded, messages::build<messages::Concluded>({}, [](auto) {}).any());
    w.tell(&observer::recorded,
           messages::build<messages::GenerationProposed>({}, [](auto) {}).any());
    CHECK(w.broken->invariant == "one_verdict");
  }
}

TEST_CASE("failures are counted once, and in order") {
  world w(1);
  w.observers = {checkers::failures_counted_once(w)};
  w.tell(&observer::recorded, counted(1, 1));
  CHECK_FALSE(w.broken);
  w.tell(&observer::recorded, counted(1, 2));
  CHECK(w.broken->invariant == "failures_counted_once");
}

TEST_CASE("a launcher that leaves a process behind is blamed") {
  world w(1);
  trainers t(w, {});
  w.observers = {checkers::nothing_left_behind(w, t)};
  const auto h = std::make_shared<host>(w, "a", 1, host_options{});
  REQUIRE(t.host_of(h)->start(trainers::scripted({}), [](auto) {}));
  h->end(ending_kind::exited);
  CHECK(w.broken->invariant == "nothing_left_behind");
}

TEST_CASE("each machine has its restarts, then another one has them, then the job ends at once") {
  for (const std::uint32_t again : {0u, 2u}) {
    INFO(again);
    cluster_options o;
    o.nodes = o.nodes_min = o.nodes_max = 2;
    o.max_restarts = 1;
    o.machines = machines_options{again, 2s};
    o.trainers.training = 10min;
    cluster c(o);
    c.all().observers = checkers::all(c.all(), c.training(), 1, {2, 2, 1, {}}, limits::lease);
    c.start_everything();
    std::uint32_t kills = 0;
    for (const auto until = c.now() + 10min; c.now() < until && !c.verdict();) {
      c.run_for(30s, [&c] { return c.training().training() || c.verdict(); });
      if (c.training().training()) {
        ++kills;
        c.training().exit(*c.training().find(global_rank{1}), {true, SIGKILL});
        c.run_for(1s, [&c] { return !c.training().training(); });
      }
    }
    const auto killed_at = c.now();
    c.run_for(30s, [&c] { return c.over(); });
    REQUIRE_MESSAGE(!c.all().broken, c.all().broken->what);
    REQUIRE(c.over());
    CHECK(kills == 2 * (again + 1));
    CHECK(c.verdict()->reason == "1 of at least 2 nodes are left, and no machine is left");
    CHECK(c.now() - killed_at < 10s); // and not after the time for which nodes are waited for
    CHECK(std::count_if(c.outcomes().begin(), c.outcomes().end(), [](const auto& each) {
            return each.second.reason.find("the only restart of node " + each.first +
                                           " is used up") != std::string::npos;
          }) == again + 1);
  }
}

TEST_CASE("a program that cannot start is not tried on each machine that a cluster gives") {
  cluster_options o;
  o.nodes = o.nodes_min = o.nodes_max = 2;
  o.max_restarts = 3;
  o.machines = machines_options{100, 2s};
  o.trainers.dies_early = 1;
  cluster c(o);
  c.start_everything();
  c.run_for(5min, [&c] { return c.over(); });
  REQUIRE(c.over());
  CHECK(c.verdict()->reason.find("on whatever node") != std::string::npos);
  CHECK(c.outcomes().size() <= 3);
}
