// Nodes whose devices are slow to begin: late, and not faulty before the user's limit.

#include "actors/master/network_check/testing/check_story.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

using namespace troupe;
using namespace troupe::actors;
using testing::story;

namespace {

network_check_options within(duration d) {
  network_check_options o;
  o.within = d;
  return o;
}

/// n0 to n2 of four have answered at once, and n3 has not when the others go on.
struct late_story : story {
  explicit late_story(network_check_options o = within(30s)) : story(std::move(o)) {
    begins(4);
    for (std::uint32_t n = 0; n < 3; ++n)
      probed(n);
    CHECK(passes(5s) == "0: n0 n1 n2");
    CHECK_FALSE(core.in_words().empty());
  }

  /// The rounds of those that are here, up to the end of them.
  std::string others_pass() {
    std::string said = "0: n0 n1 n2";
    while (said.find("good") == std::string::npos && !said.empty())
      said = all_pass(said);
    return said;
  }
};

} // namespace

TEST_SUITE("a node whose own probe is late") {
  TEST_CASE("it is told, and takes part in the round after its answer") {
    late_story s;
    CHECK(s.probed(3) == "");
    const auto next = s.all_pass("0: n0 n1 n2");
    CHECK(next.find("n3") != std::string::npos);
    auto said = next;
    for (int rounds = 0; rounds < 8 && said.find("good") == std::string::npos; ++rounds)
      said = s.all_pass(said);
    CHECK(said == "good n0 n1 n2 n3; leave; undecided");
  }

  TEST_CASE("the line says until when") {
    story s(within(30s));
    s.begins(4);
    for (std::uint32_t n = 0; n < 3; ++n)
      s.probed(n);
    s.passes(5s);
    CHECK(s.notes == "n3 has not ended its own probe after 5.0 s: the others go on, and it is "
                     "faulty unless it ends within 27.0 s (--network-check-timeout)\n");
  }

  TEST_CASE("the verdict waits for it, and it is checked with the others then") {
    late_story s;
    CHECK(s.others_pass() == "");
    CHECK(s.core.in_words().find("late") != std::string::npos);
    CHECK(s.core.next_wakeup() == instant{1s} + 32s);
    s.now += 3s;
    auto said = s.probed(3);
    CHECK(said.find("n3") != std::string::npos);
    for (int rounds = 0; rounds < 8 && said.find("good") == std::string::npos; ++rounds)
      said = s.all_pass(said);
    CHECK(said == "good n0 n1 n2 n3; leave; undecided");
  }

  TEST_CASE("it is faulty after the user's limit") {
    late_story s;
    s.others_pass();
    CHECK(s.passes(27s) == "mark n3 at 10.0.0.3; good n0 n1 n2; leave n3; undecided");
    CHECK(s.noted("node n3 is faulty: its own probe did not end in time"));
    CHECK(s.probed(3) == "");
  }

  TEST_CASE("its own words count, however late they are") {
    late_story s;
    s.others_pass();
    s.now += 20s;
    CHECK(s.probed(3, 0, "device 1 is broken") ==
          "mark n3 at 10.0.0.3; good n0 n1 n2; leave n3; undecided");
  }

  TEST_CASE("it is lost: nothing waits for it") {
    late_story s;
    s.others_pass();
    CHECK(s.lost(3) == "good n0 n1 n2; leave n3; undecided");
  }

  TEST_CASE("of two nodes the other one waits for it") {
    story s(within(30s));
    s.begins(2);
    s.probed(0);
    CHECK(s.passes(5s) == "");
    s.now += 3s;
    CHECK(s.probed(1) == "0: n0 n1");
    s.group(0, 0);
    CHECK(s.group(1, 0) == "good n0 n1; leave; undecided");
  }

  TEST_CASE("several are late, one after the other: none lacks the rounds that it needs") {
    story s(within(30s));
    s.begins(8);
    for (std::uint32_t n = 0; n < 4; ++n)
      s.probed(n);
    auto said = s.passes(5s);
    const auto all_rounds = [&] {
      for (int rounds = 0; rounds < 40 && said.find(':') != std::string::npos; ++rounds)
        said = s.all_pass(said);
    };
    all_rounds();
    for (std::uint32_t n = 4; n < 8; ++n) {
      CHECK(said == "");
      s.now += 3s;
      said = s.probed(n);
      if (n < 7) {
        CHECK(said == "");
        said = s.passes(limits::check_late_together);
      }
      CHECK(said.find(fmt::format("n{}", n)) != std::string::npos);
      all_rounds();
    }
    CHECK(said == "good n0 n1 n2 n3 n4 n5 n6 n7; leave; undecided");
  }

  TEST_CASE("late ones that answer in the same moment are checked together") {
    story s(within(30s));
    s.begins(4);
    s.probed(0);
    s.probed(1);
    CHECK(s.passes(5s) == "0: n0 n1");
    CHECK(s.all_pass("0: n0 n1") == "");
    CHECK(s.probed(2) == "");
    const auto both = s.probed(3);
    CHECK(both.find("n2") != std::string::npos);
    CHECK(both.find("n3") != std::string::npos);
  }

  TEST_CASE("slow by its first answer, it is asked once more") {
    late_story s;
    SUBCASE("and the shorter of both times counts") {
      CHECK(s.probed(3, 5) == "alone n3");
      CHECK(s.probed(3, 0.1) == "");
    }
    SUBCASE("and has answered once, whatever becomes of the second answer") {
      CHECK(s.probed(3, 5) == "alone n3");
      s.others_pass();
      CHECK(s.passes(27s) != "");
      CHECK_FALSE(s.noted("faulty"));
      return;
    }
    CHECK(s.others_pass() == "good n0 n1 n2 n3; leave; undecided");
    CHECK_FALSE(s.noted("is slow"));
  }

  TEST_CASE("devices that begin a group by their library have the whole limit") {
    story s(within(30s));
    for (std::uint32_t n = 0; n < 4; ++n)
      s.libraries[n] = "NCCL 2.27.3";
    s.begins(4);
    for (std::uint32_t n = 0; n < 4; ++n)
      s.probed(n);
    s.group(0, 0);
    s.group(1, 0);
    CHECK(s.core.next_wakeup() == s.now + 32s);
    // n2 has answered, and waits for n3 as its library does.
    s.group(2, 1);
    CHECK(s.core.next_wakeup() == s.now + 32s);
  }

  TEST_CASE("a ring of links has not") {
    story s(within(30s));
    s.libraries[0] = s.libraries[1] = "NCCL 2.27.3";
    s.begins(4);
    for (std::uint32_t n = 0; n < 4; ++n)
      s.probed(n);
    s.group(0, 0);
    CHECK(s.core.next_wakeup() == s.now + 32s);
    s.group(1, 0);
    CHECK(s.core.next_wakeup() == s.now + 5s);
  }
}
