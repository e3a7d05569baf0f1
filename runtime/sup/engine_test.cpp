#include "runtime/sup/engine.hpp"

#include "runtime/sup/root.hpp"
#include "runtime/sup/shell.hpp"
#include "runtime/sup/testing/children.hpp"
#include "runtime/sup/testing/simulated_engine.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <doctest/doctest.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

using namespace troupe;
using namespace troupe::sup;
using namespace troupe::sup::children;

namespace {

using place = address<children::handle>;

/// Waits for things that other threads bring about; the limit is only for a test that fails.
class bell {
 public:
  log::sink sink() {
    return [this](const std::string&, const log::event& e) {
      const std::lock_guard lock(mutex_);
      ++counts_[e.name];
      rung_.notify_all();
    };
  }

  bool wait_for(const std::string& name, int count) {
    std::unique_lock lock(mutex_);
    return rung_.wait_for(lock, 30s, [&] { return counts_[name] >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable rung_;
  std::map<std::string, int> counts_;
};

tree permanent(const std::string& id, const place& where, const starter& start) {
  return worker(id, restart::permanent, stop_within{5s}, where, start);
}

} // namespace

TEST_SUITE("engine") {
  TEST_CASE("a tree on threads restarts its children and ends when asked") {
    engine e(3);
    bell b;
    diary d;
    const place one, two;
    std::promise<ending> ended;
    const root r = spawn_root(e.system(),
                              one_for_all("top", {50, 60s},
                                          {permanent("one", one, well_behaved(d)),
                                           permanent("two", two, well_behaved(d))}),
                              b.sink(), [&](const ending& how) { ended.set_value(how); });
    REQUIRE(b.wait_for("child_started", 2));
    for (int i = 1; i <= 10; ++i) {
      CHECK(post(i % 2 == 0 ? one : two, crash{}));
      REQUIRE(b.wait_for("child_restarted", 2 * i));
    }
    CHECK(r.shutdown(30s));
    CHECK_FALSE(ended.get_future().get());
    CHECK_FALSE((one || two));
  }

  TEST_CASE("an actor is found at its address from its first act on, also while its starter runs") {
    engine e(2);
    const place one;
    std::promise<bool> found;
    bool at_home = false;
    const auto slow = [&](context& ctx) {
      const auto looks_at_once = [](children::handle::pointer self, context c, place where,
                                    std::promise<bool>* tell) -> children::handle::behavior_type {
        harden(self, c);
        tell->set_value(where.current() == children::handle{self});
        return {[self](describe) -> answer<description> { return described(self, "looking"); },
                [](poke) {}, [](crash) {}, [](who) { return 0u; }};
      };
      auto looked = found.get_future();
      const auto started = ctx.spawn<children::handle>(looks_at_once, ctx, one, &found);
      // Its first act is over before the supervisor hears of it.
      at_home = looked.wait_for(30s) == std::future_status::ready && looked.get();
      return started;
    };
    bell b;
    const root r = spawn_root(
        e.system(), one_for_one("top", {1, 60s}, {permanent("one", one, slow)}), b.sink(), {});
    REQUIRE(b.wait_for("child_started", 1));
    CHECK(at_home);
    CHECK(r.shutdown(30s));
  }

  TEST_CASE("an address may be used by any thread while its child dies again and again") {
    engine e(3);
    bell b;
    diary d;
    const place one;
    const root r = spawn_root(
        e.system(), one_for_one("top", {100'000, 60s}, {permanent("one", one, well_behaved(d))}),
        b.sink(), {});
    REQUIRE(b.wait_for("child_started", 1));
    std::vector<std::thread> senders;
    for (int t = 0; t < 3; ++t) {
      senders.emplace_back([&one, t] {
        for (int i = 0; i < 300; ++i) {
          if (i % 10 == t)
            post(one, crash{});
          else
            post(one, poke{});
        }
      });
    }
    for (auto& s : senders)
      s.join();
    // The one supervisor thread of control has by then seen at least the first crash.
    REQUIRE(b.wait_for("child_restarted", 1));
    CHECK(r.shutdown(30s));
  }

  TEST_CASE("a report crosses threads") {
    engine e(2);
    bell b;
    const place one;
    const root r = spawn_root(
        e.system(), one_for_one("top", {1, 60s}, {permanent("one", one, well_behaved({}))}),
        b.sink(), {});
    REQUIRE(b.wait_for("child_started", 1));
    std::promise<result<node_report>> got;
    r.report([&got](result<node_report> report) { got.set_value(std::move(report)); });
    const auto report = got.get_future().get();
    REQUIRE(report);
    CHECK(report->children.at(0).phase == "poked 0 times");
    CHECK(r.shutdown(30s));
  }

  TEST_CASE("an engine that goes takes a living tree along") {
    bell b;
    diary d;
    {
      engine e(2);
      spawn_root(e.system(),
                 one_for_one("top", {1, 60s}, {permanent("one", {}, ignores_shutdown(d))}),
                 b.sink(), {});
      REQUIRE(b.wait_for("child_started", 1));
    }
    CHECK(d.read() == "one starts, one ends");
  }

  TEST_CASE("shutdown says so when the tree does not end in time") {
    engine e(2);
    bell b;
    diary d;
    const root r = spawn_root(e.system(),
                              one_for_one("top", {1, 60s},
                                          {worker("one", restart::permanent, stop_within{60s},
                                                  place{}, ignores_shutdown(d))}),
                              b.sink(), {});
    REQUIRE(b.wait_for("child_started", 1));
    CHECK_FALSE(r.shutdown(1ms));
    CHECK_FALSE(r.ended());
    r.kill();
  }
}

TEST_SUITE("simulated engine") {
  TEST_CASE("time stands still until told, and starts where told") {
    const instant start{std::chrono::hours(1'000)};
    simulated_engine e(start);
    random_source random(1);
    std::vector<std::string> rings;
    CHECK_FALSE(e.next_timer());
    e.system().spawn([&rings, &e](caf::event_based_actor* self) -> caf::behavior {
      self->delayed_send(self, 3s, std::string("three"));
      self->delayed_send(self, 1s, std::string("one"));
      return {[&rings, &e](const std::string& what) {
        rings.push_back(what + " at " + in_words(e.now() - instant{std::chrono::hours(1'000)}));
      }};
    });
    e.run_all(random);
    CHECK(e.now() == start);
    REQUIRE(e.next_timer());
    CHECK(*e.next_timer() == start + 1s);
    e.run_for(10s, random);
    CHECK(e.now() == start + 10s);
    CHECK(rings == std::vector<std::string>{"one at 1.0 s", "three at 3.0 s"});
  }

  TEST_CASE(
      "a power cut ends everybody without asking, however busy they are, and the engine goes") {
    diary d;
    {
      simulated_engine e;
      random_source random(3);
      const place stubborn;
      spawn_root(e.system(),
                 one_for_one("top", {1, 60s},
                             {permanent("stubborn", stubborn, ignores_shutdown(d)),
                              permanent("slow", {}, slow_to_stop(d, 9s))}),
                 {}, {});
      e.run_all(random);
      // Re-arms its timer for ever: CAF's own destructor would never return.
      e.system().spawn([](caf::event_based_actor* self) -> caf::behavior {
        self->delayed_send(self, 1s, 1);
        return {[self](int n) { self->delayed_send(self, 1s, n + 1); }};
      });
      e.run_for(5s, random);
      d.read();
      e.power_cut();
      CHECK_FALSE(e.run_one(random));
      CHECK_FALSE(e.next_timer());
      CHECK_FALSE(stubborn);
      const auto ends = d.read();
      CHECK(ends.find("stubborn ends") != std::string::npos);
      CHECK(ends.find("slow ends") != std::string::npos);
      CHECK(ends.find("ignores") == std::string::npos);
    }
    CHECK(d.read() == "");
  }

  TEST_CASE("many engines live side by side in one thread") {
    std::vector<std::unique_ptr<simulated_engine>> machines;
    std::vector<place> places(64);
    random_source random(1);
    for (const auto& p : places) {
      machines.push_back(std::make_unique<simulated_engine>());
      spawn_root(machines.back()->system(),
                 one_for_one("top", {1, 60s}, {permanent("one", p, well_behaved({}))}), {}, {});
      machines.back()->run_all(random);
    }
    for (const auto& p : places)
      CHECK(p);
    machines.clear();
    for (const auto& p : places)
      CHECK_FALSE(p);
  }
}
