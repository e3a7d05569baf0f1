#include "actors/node_supervisor/worker_channel/fatal_signals_core.hpp"

#include "actors/limits.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>

using namespace troupe;
using namespace troupe::actors;

namespace {

struct story {
  instant now = instant{} + 1'000s;
  fatal_signals_core core;
  std::vector<fatal_signals_core::note> notes;

  story() { begins(1); }

  std::string words(const fatal_signals_core::effects& effects) {
    std::string all;
    const auto add = [&all](const std::string& one) { all += (all.empty() ? "" : "; ") + one; };
    for (const auto& e : effects) {
      if (const auto* g = std::get_if<fatal_signals_core::go_on>(&e))
        add(fmt::format("{} goes on ({})", g->to, g->correlation));
      else if (const auto* r = std::get_if<fatal_signals_core::read_stacks>(&e))
        for (const auto& p : r->processes)
          add(fmt::format("read {} of g{}: rank {} of {}, thread {} of {}", r->number,
                          r->about.value, p.rank, p.world_size, p.thread, p.pid));
      else if (const auto* n = std::get_if<fatal_signals_core::note>(&e)) {
        notes.push_back(*n);
        add(fmt::format("{}: {}", log::to_string(n->event.severity), n->event.text));
      }
    }
    return all;
  }
  std::string begins(std::uint64_t g) { return words(core.begin(generation{g}, 4)); }
  std::string hit(std::uint32_t rank, int signal = SIGSEGV) {
    const messages::stamp envelope{"process", {}, generation{1}, 1, 9};
    return words(core.hit(now, 10 + rank, static_cast<std::int32_t>(100 + rank), rank,
                          messages::build<messages::FatalSignal>(envelope, [&](auto b) {
                            b.setSignal(signal);
                            b.setThread(static_cast<std::int32_t>(200 + rank));
                          })));
  }
  std::string read(std::uint64_t number, const std::vector<std::uint32_t>& ranks) {
    std::vector<diag::crash_report> reports;
    for (const auto rank : ranks)
      reports.push_back({rank, "f() at a.py:1 (g)", fmt::format("/run/{}.txt", rank), {}});
    return words(core.read(number, reports));
  }
  std::string passes(duration d) {
    now += d;
    return words(core.tick(now));
  }
};

constexpr auto rank_2_told =
    "warning: rank 2 was hit by SIGSEGV in f() at a.py:1 (g); all its threads: /run/2.txt";

} // namespace

TEST_SUITE("fatal_signals_core") {
  TEST_CASE("stacks are read, the line is told, and then the process goes on") {
    story s;
    CHECK(s.hit(2) == "read 1 of g1: rank 2 of 4, thread 202 of 102");
    CHECK(s.read(1, {2}) == std::string(rank_2_told) + "; 12 goes on (9)");
    CHECK(!s.core.next_wakeup());
    const auto& fields = s.notes.at(0).event.fields;
    CHECK(fields.size() == 6);
  }

  TEST_CASE("those that crash meanwhile are read together, and none is let go before") {
    story s;
    CHECK(s.hit(2).find("read 1") == 0);
    CHECK(s.hit(0) == "");
    CHECK(s.hit(3) == "");
    CHECK(s.read(1, {2}) == std::string(rank_2_told) +
                                "; read 2 of g1: rank 0 of 4, thread 200 of 100; "
                                "read 2 of g1: rank 3 of 4, thread 203 of 103");
    CHECK(s.read(1, {0, 3}) == "");
    CHECK(s.hit(1) == "");
    CHECK(s.read(2, {0, 3}).find("goes on") == std::string::npos);
    const auto last = s.read(3, {1});
    CHECK(last.find("; 10 goes on (9); 11 goes on (9); 12 goes on (9); 13 goes on (9)") !=
          std::string::npos);
    CHECK(s.notes.size() == 4);
    CHECK(!s.core.next_wakeup());
  }

  TEST_CASE("one whose stacks are kept waits for the others no longer than for itself") {
    story s;
    s.hit(2);
    s.passes(1s);
    s.hit(0);
    s.read(1, {2});
    CHECK(s.passes(300ms) == "12 goes on (9)");
    CHECK(s.passes(999ms) == "");
    CHECK(s.passes(1ms).find("; 10 goes on (9)") != std::string::npos);
  }

  TEST_CASE("stacks that do not come in time are done without, and come to nothing later") {
    story s;
    s.hit(2);
    CHECK(s.core.next_wakeup() == s.now + limits::crash_answered_within);
    CHECK(s.passes(limits::crash_answered_within - 1ms) == "");
    CHECK(s.hit(0) == "");
    CHECK(s.passes(1ms) ==
          "warning: rank 2 was hit by SIGSEGV; its stacks are not kept: not within "
          "1.3 s; 12 goes on (9)");
    CHECK(s.read(1, {2}) == "read 2 of g1: rank 0 of 4, thread 200 of 100");
  }

  TEST_CASE("without a report the process goes on at once") {
    story s;
    s.hit(2, SIGABRT);
    CHECK(s.read(1, {}) == "warning: rank 2 was hit by SIGABRT; its stacks are not kept: this "
                           "program reads none; 12 goes on (9)");
  }

  TEST_CASE("what a process says again, or wrongly, costs one answer") {
    story s;
    CHECK(s.hit(1, SIGTERM) == "11 goes on (9)");
    CHECK(s.hit(1, -5) == "11 goes on (9)");
    CHECK(s.hit(1).find("read 1") == 0);
    CHECK(s.hit(1) == "11 goes on (9)");
    s.read(1, {1});
    CHECK(s.hit(1) == "11 goes on (9)");
  }

  TEST_CASE("names and reasons that come from a process stay one line, of bounded length") {
    story s;
    s.hit(2);
    const auto told = s.words(s.core.read(1, {{2, std::string(10'000, 'x') + "\n", "", "a\nb"}}));
    CHECK(told.size() < limits::place_max + 200);
    CHECK(told.find("not kept: a?b") != std::string::npos);
  }

  TEST_CASE("another generation lets go those of the last one, and each rank may crash again") {
    story s;
    s.hit(2);
    CHECK(s.begins(1) == "");
    CHECK(s.begins(2) == "12 goes on (9)");
    CHECK(s.hit(2) == "");
    CHECK(s.read(1, {2}) == "read 2 of g2: rank 2 of 4, thread 202 of 102");
  }

  TEST_CASE("a job that crashes again and again leaves a bounded number of files") {
    story s;
    for (std::size_t n = 0; n < limits::crashes_read_max; ++n) {
      s.begins(n + 1);
      CHECK(s.hit(2).find("read ") == 0);
      s.read(n + 1, {2});
    }
    s.begins(limits::crashes_read_max + 1);
    CHECK(s.hit(2) == "12 goes on (9)");
  }
}
