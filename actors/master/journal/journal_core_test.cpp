#include "actors/master/journal/journal_core.hpp"

#include "tests/actors/vocabulary.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::actors::testing;

namespace {

struct in_words {
  std::string operator()(const journal_core::write& e) const {
    return fmt::format("write {}", e.which);
  }
  std::string operator()(const journal_core::acknowledge& e) const {
    return fmt::format("acknowledge {} as {}", e.which, e.index);
  }
  std::string operator()(const journal_core::refuse& e) const {
    return fmt::format("refuse {}: {}", e.which, e.why.what);
  }
  std::string operator()(const journal_core::compact&) const { return "compact"; }
  std::string operator()(const journal_core::note&) const { return {}; }
};

struct story {
  explicit story(bool asked_for = true) : core({"/j", asked_for}) {
    core.begin();
    core.compacted({});
  }

  std::string tell(const journal_core::effects& effects) {
    std::string all;
    for (const auto& e : effects)
      if (const auto line = std::visit(in_words{}, e); !line.empty())
        all += (all.empty() ? "" : "\n") + line;
    said = notes(effects);
    return all;
  }
  std::string append(std::uint64_t ticket, std::uint64_t g = 1) {
    return tell(core.append(ticket, proposed_record(g)));
  }
  std::string took(std::uint64_t ticket, std::uint64_t index) {
    return tell(core.written(now, ticket, index));
  }
  std::string full(std::uint64_t ticket) {
    return tell(core.written(now, ticket, failure(errc::unavailable, "journal '/j': disk full")));
  }
  std::string passes(duration d) {
    now += d;
    return tell(core.tick(now));
  }

  journal_core core;
  instant now = dawn;
  std::string said;
};

} // namespace

TEST_SUITE("journal_core") {
  TEST_CASE("without trouble a record goes to the store at once and is acknowledged by it") {
    story s;
    CHECK(s.append(1) == "write 1");
    CHECK(s.append(2) == "write 2");
    CHECK(s.took(1, 7) == "acknowledge 1 as 7");
    CHECK(s.took(2, 8) == "acknowledge 2 as 8");
    CHECK_FALSE(s.core.next_wakeup());
  }

  TEST_CASE("what the store refuses for good is refused") {
    story s;
    s.append(1);
    CHECK(s.tell(s.core.written(s.now, 1, failure(errc::refused, "broken"))) == "refuse 1: broken");
  }

  TEST_CASE("while the disk is full a decision waits, is tried again, and the user is told") {
    story s;
    s.append(1);
    CHECK(s.full(1) == "");
    CHECK(s.said.find("journal '/j': disk full. Training goes on; a node that is lost or fails is "
                      "not replaced until the journal takes the decision: free some space there") ==
          0);
    CHECK(s.append(2) == "");
    CHECK(s.core.in_words() == "journal '/j': disk full; 2 decision(s) wait");
    CHECK(s.passes(100ms) == "write 1");
    CHECK(s.full(1) == "");
    CHECK(s.said == "");
    CHECK(s.passes(100ms) == "");
    CHECK(s.passes(100ms) == "write 1");
    CHECK(s.took(1, 1) == lines("acknowledge 1 as 1", "write 2"));
    CHECK(s.took(2, 2) == "acknowledge 2 as 2");
    CHECK(s.said.find("the journal '/j' takes decisions again, after 300") == 0);
    CHECK(s.append(3) == "write 3");
    CHECK_FALSE(s.core.next_wakeup());
  }

  TEST_CASE("it is told again now and again, and tried no more often than every 10 s") {
    story s;
    s.append(1);
    s.full(1);
    std::size_t tries = 0, told = 0;
    for (const auto begin = s.now; s.now < begin + 1h;) {
      const auto next = s.core.next_wakeup();
      REQUIRE(next);
      REQUIRE(*next > s.now);
      tries += s.passes(*next - s.now) == "write 1";
      told += !s.said.empty();
      s.full(1);
    }
    CHECK(tries > 350);
    CHECK(tries < 380);
    CHECK(told > 55);
    CHECK(told < 70);
  }

  TEST_CASE("records that were with the store together keep their order") {
    story s;
    s.append(1);
    s.append(2);
    s.full(1);
    s.full(2);
    CHECK(s.passes(1s) == "write 1");
    CHECK(s.took(1, 1) == lines("acknowledge 1 as 1", "write 2"));
  }

  TEST_CASE("a journal that was not asked for holds up no decision") {
    story s(false);
    s.append(1);
    CHECK(s.full(1) == "acknowledge 1 as 0");
    CHECK(s.said.find("the master keeps its decisions in memory") != std::string::npos);
    CHECK(s.append(2) == "acknowledge 2 as 0");
    CHECK(s.core.unwritten().size() == 2);
    CHECK(s.passes(1s) == "write 1");
    CHECK(s.took(1, 1) == "write 2");
    CHECK(s.core.unwritten().size() == 1);
    CHECK(s.took(2, 2) == "");
    CHECK(s.core.unwritten().empty());
  }

  TEST_CASE("a planner that begins anew withdraws what waits and was not announced") {
    story s;
    s.append(1);
    s.full(1);
    s.append(2);
    SUBCASE("the disk has no room for the one that is with the store either") {
      CHECK(s.passes(100ms) == "write 1");
      CHECK(s.tell(s.core.withdraw()) == "refuse 2: the planner has begun anew");
      CHECK(s.append(3, 2) == "");
      CHECK(s.full(1) == "refuse 1: journal '/j': disk full");
      CHECK(s.passes(200ms) == "write 3");
      CHECK(s.took(3, 1) == "acknowledge 3 as 1");
    }
    SUBCASE("the one that is with the store is written, and read after it") {
      CHECK(s.passes(100ms) == "write 1");
      CHECK(s.tell(s.core.withdraw()) == "refuse 2: the planner has begun anew");
      CHECK(s.took(1, 1) == "acknowledge 1 as 1");
      CHECK(s.append(3, 2) == "write 3");
    }
    SUBCASE("none is with the store: the next decision is tried at once") {
      CHECK(s.tell(s.core.withdraw()) ==
            lines("refuse 1: the planner has begun anew", "refuse 2: the planner has begun anew"));
      CHECK_FALSE(s.core.next_wakeup());
      CHECK(s.append(3, 2) == "write 3");
    }
  }

  TEST_CASE("what was announced from memory is not withdrawn") {
    story s(false);
    s.append(1);
    CHECK(s.full(1) == "acknowledge 1 as 0");
    CHECK(s.tell(s.core.withdraw()) == "");
    CHECK(s.core.unwritten().size() == 1);
    CHECK(s.passes(100ms) == "write 1");
  }

  TEST_CASE("what waits is bounded") {
    story s(false);
    s.append(1);
    s.full(1);
    for (std::uint64_t ticket = 2; ticket <= limits::journal_unwritten_max; ++ticket)
      CHECK(s.append(ticket).find("acknowledge") == 0);
    CHECK(s.append(limits::journal_unwritten_max + 1).find("refuse") == 0);
  }

  TEST_CASE("the journal is compacted at the start, and after many records") {
    journal_core core({});
    CHECK(std::holds_alternative<journal_core::compact>(core.begin().at(0)));
    story s;
    for (std::uint64_t n = 1; n < limits::journal_compact_records; ++n) {
      s.append(n);
      CHECK(s.took(n, n) == fmt::format("acknowledge {} as {}", n, n));
    }
    const auto last = limits::journal_compact_records;
    s.append(last);
    CHECK(s.took(last, last) == lines(fmt::format("acknowledge {} as {}", last, last), "compact"));
    s.append(last + 1);
    CHECK(s.took(last + 1, 1) == fmt::format("acknowledge {} as 1", last + 1));
    CHECK(s.tell(s.core.compacted(failure(errc::unavailable, "disk full"))) == "");
    CHECK(s.said.find("goes on growing: disk full") != std::string::npos);
  }
}
