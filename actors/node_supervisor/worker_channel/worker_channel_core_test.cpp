#include "actors/node_supervisor/worker_channel/worker_channel_core.hpp"

#include "actors/limits.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <utility>

using namespace troupe;
using namespace troupe::actors;

namespace {

using link = worker_channel_core::link;

std::uint64_t ns(instant t) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(t.time_since_epoch()).count());
}

struct story {
  instant now = instant{} + 1'000s;
  worker_channel_core core{messages::author("channel"), now};
  messages::author process{"process"};

  /// What followed, in words; what is only for a closer look is left out.
  static std::string words(const worker_channel_core::effects& effects) {
    std::string all;
    const auto add = [&all](const std::string& one) { all += (all.empty() ? "" : "; ") + one; };
    for (const auto& e : effects) {
      if (const auto* s = std::get_if<worker_channel_core::send>(&e))
        add(fmt::format("{} {} as {}", s->message.is<messages::GoOn>() ? "let go" : "ask", s->to,
                        s->message.envelope().correlation));
      else if (const auto* c = std::get_if<worker_channel_core::close>(&e))
        add(fmt::format("close {}", c->which));
      else if (const auto* k = std::get_if<worker_channel_core::keep>(&e))
        for (const auto& r : k->records)
          add(fmt::format("keep {} of rank {}: {}", k->dump, r.rank, r.json));
      else if (const auto* r = std::get_if<worker_channel_core::read_stacks>(&e))
        for (const auto& p : r->processes)
          add(fmt::format("read {}: rank {} of {}, thread {} of {}", r->number, p.rank,
                          p.world_size, p.thread, p.pid));
      else if (const auto* n = std::get_if<worker_channel_core::note>(&e))
        add(fmt::format("{}: {}", log::to_string(n->event.severity), n->event.text));
    }
    return all;
  }

  /// Ranks 0 and 1 are processes 100 and 101; without `some` they have ended.
  messages::msg<messages::Watched> processes(std::uint64_t g, bool some = true,
                                             std::uint64_t failed_at = 0) {
    messages::author agent("agent");
    return agent.write<messages::Watched>(generation{g}, [&](auto b) {
      b.setWorldSize(2);
      b.setFailedAtNs(failed_at);
      auto all = b.initProcesses(some ? 2 : 0);
      for (unsigned i = 0; i < all.size(); ++i) {
        all[i].setRank(i);
        all[i].setLocalRank(i);
        all[i].setPid(static_cast<std::int32_t>(100 + i));
      }
    });
  }
  std::string watched(std::uint64_t g, bool some = true, std::uint64_t failed_at = 0) {
    return words(core.watched(now, processes(g, some, failed_at)));
  }
  std::string arrives(link which, std::int32_t pid, std::int32_t session = 0) {
    return words(core.arrived(now, {which, pid, session}));
  }
  std::string hello(link from, std::uint64_t g, std::uint64_t first_step = 0) {
    return words(core.said(now, from,
                           process
                               .write<messages::WorkerHello>(generation{g},
                                                             [&](auto b) {
                                                               b.setGeneration(g);
                                                               b.setRank(7); // a lie
                                                               b.setVersion("1\n2");
                                                               b.setPython("3.12");
                                                               b.setTorch("2.4");
                                                               b.setFirstStepNs(first_step);
                                                             })
                               .any()));
  }
  std::string steps(link from, instant at, duration since_failure = {}) {
    return words(core.said(
        now, from,
        process
            .write<messages::FirstStep>(generation{1},
                                        [&](auto b) {
                                          b.setAtNs(ns(at));
                                          b.setSinceFailureNs(static_cast<std::uint64_t>(
                                              std::chrono::nanoseconds(since_failure).count()));
                                        })
            .any()));
  }
  std::string wants_stacks(std::uint64_t g, duration within = 2s) {
    messages::author diagnosis("diagnosis");
    return words(
        core.stacks_wanted(now, diagnosis.write<messages::StacksWanted>(generation{g}, [&](auto b) {
          b.setDump(5);
          b.setWithinMs(static_cast<std::uint64_t>(within / 1ms));
        })));
  }
  std::string gives(link from, std::uint64_t question, const std::string& piece, std::uint64_t at,
                    std::uint64_t bytes) {
    messages::stamp envelope{"process", {}, generation{1}, 1, question};
    return words(core.said(
        now, from, messages::build<messages::FlightRecord>(envelope, [&](auto b) {
                     b.setPiece({reinterpret_cast<const kj::byte*>(piece.data()), piece.size()});
                     b.setAt(at);
                     b.setBytes(bytes);
                   }).any()));
  }
  std::string has_none(link from, std::uint64_t question, const std::string& why) {
    messages::stamp envelope{"process", {}, generation{1}, 1, question};
    return words(core.said(
        now, from,
        messages::build<messages::FlightRecord>(envelope, [&](auto b) { b.setWhy(why); }).any()));
  }
  std::string is_hit(link from) {
    const messages::stamp envelope{"process", {}, generation{1}, 1, 1};
    return words(core.said(now, from, messages::build<messages::FatalSignal>(envelope, [](auto b) {
                                        b.setSignal(11); // SIGSEGV
                                        b.setThread(77);
                                      }).any()));
  }
  std::string passes(duration d) {
    now += d;
    return words(core.tick(now));
  }
  /// Ranks 0 and 1 on links 1 and 2.
  void both_talk() {
    watched(1);
    for (const link each : {1, 2}) {
      arrives(each, static_cast<std::int32_t>(99 + each));
      hello(each, 1);
    }
  }
};

constexpr auto is_foreign =
    "warning: process 300 is turned away from the workers' channel: it is no training process of "
    "this node";

} // namespace

TEST_SUITE("worker_channel_core: which processes are let in") {
  TEST_CASE("a training process, and one in its session; the kernel says which rank it is") {
    story s;
    s.watched(1);
    CHECK(s.arrives(1, 100) == "");
    CHECK(s.arrives(2, 250, 101) == "");
    CHECK(s.hello(1, 1).find("debug: rank 0 (pid 100) is on the channel: libtroupe_worker 1?2") ==
          0);
    CHECK(s.hello(2, 1).find("debug: rank 1 (pid 250) is on the channel") == 0);
    CHECK(s.hello(2, 1) == "");
    CHECK(s.core.in_words() == "2 of 2 processes talk");
    CHECK(!s.core.next_wakeup());
  }

  TEST_CASE("any other is turned away at once, and what it says is not heard") {
    story s;
    s.watched(1);
    CHECK(s.arrives(1, 300) == std::string("close 1; ") + is_foreign);
    CHECK(s.arrives(2, 0, -1).find("close 2") == 0);
    CHECK(s.hello(1, 1) == "");
    CHECK(s.watched(1) == "");
  }

  TEST_CASE("while none is watched it is waited for, and what it has said is heard then") {
    story s;
    CHECK(s.arrives(1, 100) == "");
    CHECK(s.arrives(2, 300) == "");
    CHECK(s.hello(1, 1) == "");
    CHECK(s.watched(1).find("debug: rank 0 (pid 100) is on the channel") == 0);
    CHECK(s.watched(1) == "");
  }

  TEST_CASE("while none is watched the unknown are waited with for so long") {
    story s;
    CHECK(s.arrives(2, 300) == "");
    CHECK(s.core.next_wakeup() == s.now + limits::worker_hello_within);
    CHECK(s.passes(limits::worker_hello_within - 1ms) == "");
    CHECK(s.passes(1ms) == std::string("close 2; ") + is_foreign);
    CHECK(!s.core.next_wakeup());
  }

  TEST_CASE("one that does not say hello") {
    story s;
    s.watched(1);
    s.arrives(1, 100);
    CHECK(s.passes(limits::worker_hello_within) ==
          "close 1; warning: process 100 is turned away from the workers' channel: rank 0 has not "
          "said hello within 10 s");
  }

  TEST_CASE("one process cannot take the places of others") {
    story s;
    s.watched(1);
    for (link each = 1; each <= limits::worker_links_per_rank; ++each)
      CHECK(s.arrives(each, 100) == "");
    CHECK(s.arrives(8, 100).find("close 8; warning: process 100") == 0);
    CHECK(s.arrives(9, 101) == "");
    CHECK(s.words(s.core.closed(s.now, 1)) == "");
    CHECK(s.words(s.core.closed(s.now, 8)) == "");
    CHECK(s.arrives(10, 100) == "");
  }

  TEST_CASE("many that are turned away give few lines") {
    story s;
    s.watched(1);
    std::size_t lines = 0;
    for (link each = 1; each <= 1'000; ++each)
      lines += s.arrives(each, 300).find("warning") != std::string::npos ? 1 : 0;
    CHECK(lines == limits::refusals_told);
    s.now += limits::refusals_counted_for;
    CHECK(s.arrives(2'000, 300).find("warning") != std::string::npos);
  }
}

TEST_SUITE("worker_channel_core: the first step") {
  TEST_CASE("after a failure it is for everyone to read") {
    story s;
    s.watched(1, true, ns(s.now - 5s));
    s.arrives(1, 100);
    s.hello(1, 1);
    s.now += 3s;
    CHECK(s.steps(1, s.now - 600ms) == "notice: the first step was made 7.4 s after the failure");
    CHECK(s.steps(1, s.now) == "");
  }

  TEST_CASE("without one it is counted from the start of the workers") {
    story s;
    s.watched(1);
    s.arrives(1, 100);
    s.hello(1, 1);
    s.now += 20s;
    CHECK(s.steps(1, s.now - 7'700ms) ==
          "info: the first step was made 12.3 s after the workers were started");
  }

  TEST_CASE("only rank 0 tells it, whatever another one says of itself") {
    story s;
    s.both_talk();
    CHECK(s.steps(2, s.now) == "");
    CHECK(s.steps(1, s.now) != "");
  }

  TEST_CASE("it may be in a hello, and each generation has its own") {
    story s;
    s.watched(1);
    s.arrives(1, 100);
    s.now += 1s;
    CHECK(s.hello(1, 1, ns(s.now)).find("info: the first step was made 1.0 s") !=
          std::string::npos);
    s.watched(1, false);
    s.watched(2, true, ns(s.now));
    s.now += 1s;
    CHECK(s.hello(1, 1, ns(s.now)) == "");
    s.arrives(3, 100);
    CHECK(
        s.hello(3, 2, ns(s.now)).find("notice: the first step was made 1.0 s after the failure") !=
        std::string::npos);
  }

  TEST_CASE("what an earlier supervisor has told is not told again") {
    story s;
    CHECK(s.words(s.core.found(s.now, s.processes(1))) == "");
    s.arrives(1, 100);
    CHECK(s.hello(1, 1, ns(s.now - 1s)).find("first step") == std::string::npos);
    CHECK(s.steps(1, s.now) == "");
  }

  TEST_CASE("after a restart of the supervisor the process knows of the failure") {
    story s;
    s.core.found(s.now, s.processes(1));
    s.arrives(1, 100);
    s.hello(1, 1);
    SUBCASE("that led to it") {
      CHECK(s.steps(1, s.now, 3s) == "notice: the first step was made 3.0 s after the failure");
    }
    SUBCASE("and there was none") {
      CHECK(s.steps(1, s.now) == "info: the first step was made");
    }
    SUBCASE("and nothing it says is believed that cannot be") {
      CHECK(s.steps(1, s.now, limits::first_step_most + 1s) == "info: the first step was made");
    }
  }

  TEST_CASE("what the agent said meanwhile is newer than its answer") {
    story s;
    s.watched(2);
    CHECK(s.words(s.core.found(s.now, s.processes(1))) == "");
    s.arrives(1, 100);
    CHECK(s.hello(1, 2).find("debug: rank 0") == 0);
  }

  TEST_CASE("a time to come is now") {
    story s;
    s.both_talk();
    CHECK(s.steps(1, s.now + 24h) ==
          "info: the first step was made 0.0 s after the workers were started");
  }
}

TEST_SUITE("worker_channel_core: flight records") {
  TEST_CASE("all are asked, and what came whole is kept") {
    story s;
    s.both_talk();
    CHECK(s.wants_stacks(1) == "ask 1 as 1; ask 2 as 1");
    CHECK(s.gives(1, 1, "{\"a\"", 0, 8) == "");
    CHECK(s.gives(2, 1, "{}", 0, 2) == "");
    CHECK(s.gives(1, 1, ": 1}", 4, 8) == "keep 5 of rank 1: {}; keep 5 of rank 0: {\"a\": 1}");
    CHECK(s.words(s.core.kept(std::string("/run/stacks/5"))) ==
          "info: the records of the last collectives are at /run/stacks/5");
    CHECK(!s.core.next_wakeup());
  }

  TEST_CASE("a process without the recorder says why") {
    story s;
    s.both_talk();
    s.wants_stacks(1);
    CHECK(s.has_none(1, 1, "TORCH_NCCL_TRACE_BUFFER_SIZE is 0") ==
          "debug: rank 0 has no flight record: TORCH_NCCL_TRACE_BUFFER_SIZE is 0");
    CHECK(s.has_none(2, 1, "nor I") == "debug: rank 1 has no flight record: nor I");
    CHECK(!s.core.next_wakeup());
  }

  TEST_CASE("what does not come in time is done without") {
    story s;
    s.both_talk();
    s.wants_stacks(1);
    s.gives(2, 1, "{}", 0, 2);
    s.gives(1, 1, "{", 0, 2);
    CHECK(s.passes(2s - 1ms) == "");
    CHECK(s.passes(1ms) == "debug: rank 0 has no flight record: it did not come in time; keep 5 of "
                           "rank 1: {}");
    CHECK(s.gives(1, 1, "}", 1, 2) == "");
  }

  TEST_CASE("pieces that do not fit end it") {
    story s;
    s.both_talk();
    s.wants_stacks(1);
    const auto bad = "debug: rank 0 has no flight record: its pieces do not fit";
    SUBCASE("a gap") {
      CHECK(s.gives(1, 1, "x", 1, 8) == bad);
    }
    SUBCASE("more than announced") {
      CHECK(s.gives(1, 1, "xxxx", 0, 3) == bad);
    }
    SUBCASE("less in the end") {
      s.gives(1, 1, "xxxx", 0, 8);
      CHECK(s.gives(1, 1, "y", 4, 3) == bad);
    }
    SUBCASE("nothing, again and again") {
      CHECK(s.gives(1, 1, "", 0, 8) == bad);
    }
    SUBCASE("too much") {
      CHECK(s.gives(1, 1, "x", 0, limits::flight_record_max + 1) == bad);
    }
    SUBCASE("its connection ends") {
      CHECK(s.words(s.core.closed(s.now, 1)) ==
            "debug: rank 0 has no flight record: its connection has ended");
    }
    CHECK(s.gives(1, 1, "x", 0, 1) == "");
    CHECK(s.gives(2, 1, "{}", 0, 2) == "keep 5 of rank 1: {}");
  }

  TEST_CASE("answers to no question, or to an older one, are dropped") {
    story s;
    s.both_talk();
    CHECK(s.gives(1, 0, "{}", 0, 2) == "");
    s.wants_stacks(1);
    CHECK(s.wants_stacks(1).find("ask 1 as 2; ask 2 as 2") != std::string::npos);
    CHECK(s.gives(1, 1, "{}", 0, 2) == "");
    CHECK(s.wants_stacks(2) != "ask 1 as 3");
  }

  TEST_CASE("an empty record is one") {
    story s;
    s.both_talk();
    s.wants_stacks(1);
    s.has_none(2, 1, "none");
    CHECK(s.gives(1, 1, "", 0, 0) == "keep 5 of rank 0: ");
  }
}

TEST_SUITE("worker_channel_core: fatal signals") {
  TEST_CASE("stacks are read of the process that the kernel names, also before its hello") {
    story s;
    s.watched(1);
    s.arrives(1, 250, 101);
    CHECK(s.is_hit(1) == "read 1: rank 1 of 2, thread 77 of 250");
    CHECK(s.words(s.core.crashes_read(1, {{1, "f()", "/run/1.txt", ""}})) ==
          "warning: rank 1 was hit by SIGSEGV in f(); all its threads: /run/1.txt; let go 1 as 1");
  }

  TEST_CASE("one that is not known, or not any more, is let go at once") {
    story s;
    s.arrives(1, 100);
    CHECK(s.is_hit(1) == "let go 1 as 1");
    s.watched(1);
    s.watched(1, false);
    CHECK(s.is_hit(1) == "let go 1 as 1");
  }

  TEST_CASE("it is woken for the one that waits longest") {
    story s;
    s.both_talk();
    s.is_hit(1);
    CHECK(s.core.next_wakeup() == s.now + limits::crash_answered_within);
    CHECK(s.passes(limits::crash_answered_within).find("let go 1 as 1") != std::string::npos);
    CHECK(!s.core.next_wakeup());
  }
}
