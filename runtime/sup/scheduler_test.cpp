#include "runtime/sup/engine.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using troupe::sup::engine;

namespace {

constexpr auto patience = 30s; // only for a test that fails

std::ptrdiff_t threads_of_this_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

template<class T>
T value_of(std::future<T> later) {
  REQUIRE(later.wait_for(patience) == std::future_status::ready);
  return later.get();
}

/// Answers nothing, ever.
caf::behavior silent(caf::event_based_actor* self) {
  return {[self](int) { return self->make_response_promise<int>(); }};
}

} // namespace

TEST_SUITE("scheduler") {
  TEST_CASE("an engine has the threads it was given, and none for its timers") {
    const engine first(1); // a sanitizer's own thread comes with the first of the program's
    const auto before = threads_of_this_process();
    const engine e(2);
    CHECK(threads_of_this_process() == before + 2);
  }

  TEST_CASE("timers ring in the order of their times, and not too early") {
    engine e(1);
    std::promise<std::string> rung;
    const auto began = std::chrono::steady_clock::now();
    e.system().spawn([&rung](caf::event_based_actor* self) -> caf::behavior {
      for (const int ms : {30, 10, 20})
        self->delayed_send(self, std::chrono::milliseconds(ms), ms);
      return {[&rung, order = std::string()](int ms) mutable {
        order += std::to_string(ms) + " ";
        if (ms == 30)
          rung.set_value(order);
      }};
    });
    CHECK(value_of(rung.get_future()) == "10 20 30 ");
    CHECK(std::chrono::steady_clock::now() - began >= 30ms);
  }

  TEST_CASE("a timer that comes first wakes an engine that sleeps for a later one") {
    engine e(2);
    std::promise<void> rung;
    const auto ringer = e.system().spawn([&rung](caf::event_based_actor* self) -> caf::behavior {
      self->delayed_send(self, 1h, std::string("much later"));
      return {[&rung](const std::string& what) {
        if (what == "soon")
          rung.set_value();
      }};
    });
    std::this_thread::sleep_for(5ms); // so that it sleeps; if not, the test shows less
    caf::delayed_anon_send(ringer, 5ms, std::string("soon"));
    CHECK(rung.get_future().wait_for(patience) == std::future_status::ready);
  }

  TEST_CASE("a question without an answer ends at its deadline, one with an answer does not") {
    engine e(2);
    std::promise<std::string> how;
    e.system().spawn([&how](caf::event_based_actor* self) {
      const auto nobody = self->spawn(silent);
      const auto somebody =
          self->spawn([]() -> caf::behavior { return {[](int x) { return x; }}; });
      self->request(somebody, 20ms, 7).then([self, nobody, &how](int x) {
        self->request(nobody, 20ms, x)
            .then([&how](int) { how.set_value("answered"); },
                  [self, &how](const caf::error& why) {
                    // Beyond the answered question's deadline, whose timer must be gone by then.
                    self->delayed_send(self, 40ms, why == caf::sec::request_timeout);
                    self->become(
                        [&how](bool in_time) { how.set_value(in_time ? "in time" : "otherwise"); });
                  });
      });
    });
    CHECK(value_of(how.get_future()) == "in time");
  }

  TEST_CASE("a timer may be the last that holds an actor") {
    engine e(1);
    std::promise<void> gone;
    const auto tells = [&gone](void*) { gone.set_value(); };
    {
      const auto victim =
          e.system().spawn([](caf::event_based_actor*) -> caf::behavior { return {[](int) {}}; });
      // Dropped with the actor's last hold, which then is the timer's.
      victim->attach_functor([held = std::shared_ptr<void>(nullptr, tells)] {});
      caf::delayed_anon_send(victim, 5ms, 1);
    }
    CHECK(gone.get_future().wait_for(patience) == std::future_status::ready);
  }

  TEST_CASE("threads that send to each other and set timers lose nothing") {
    engine e(3);
    constexpr int actors = 20, turns = 200;
    std::atomic<int> left = actors;
    std::promise<void> done;
    for (int i = 0; i < actors; ++i) {
      e.system().spawn([&left, &done](caf::event_based_actor* self) -> caf::behavior {
        self->send(self, 0);
        return {[self, &left, &done](int turn) {
                  if (turn == turns) {
                    if (--left == 0)
                      done.set_value();
                    self->quit();
                  } else if (turn % 2 == 0) {
                    self->delayed_send(self, std::chrono::microseconds(turn), turn + 1);
                  } else {
                    self->request(caf::actor(self), 1s, std::string("?")).then([](int) {});
                    self->send(self, turn + 1);
                  }
                },
                [](const std::string&) { return 1; }};
      });
    }
    CHECK(done.get_future().wait_for(patience) == std::future_status::ready);
  }

  TEST_CASE("an engine goes with timers that have not rung, and with actors that are busy") {
    std::atomic<int> rounds = 0;
    {
      engine e(2);
      for (int i = 0; i < 4; ++i) {
        e.system().spawn([&rounds](caf::event_based_actor* self) -> caf::behavior {
          self->send(self, 1);
          self->delayed_send(self, 1h, 2);
          return {[self, &rounds](int x) {
            ++rounds;
            self->send(self, x);
          }};
        });
      }
      while (rounds < 100)
        std::this_thread::yield();
    }
    CHECK(rounds >= 100);
  }
}
