#include "actors/master/network_check/testing/check_story.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::messages;
using testing::story;

namespace {

/// A master that stands at this address.
network_check_options with_witness(const std::string& address) {
  network_check_options o;
  o.witness = {story::name(story::witness), 777,
               [address](const std::string& other) { return other == address; }};
  return o;
}

} // namespace

TEST_SUITE("groups of a check of nodes") {
  TEST_CASE("two that fail with each other, and a master that stands alone: it tells which") {
    struct row {
      bool first_works, second_works; ///< with the master
      std::string answer;
      std::string said;
    };
    for (const auto& [first_works, second_works, answer, why] : {
             row{true, false, "mark n1 at 10.0.0.1; good n0; leave n1; undecided",
                 "node n1 is faulty: its probes failed with n0, the master, which work with others "
                 "(or each of its links to them is faulty); it says of the last: cut off; it "
                 "leaves"},
             row{false, true, "mark n0 at 10.0.0.0; good n1; leave n0; undecided",
                 "node n0 is faulty"},
             row{true, true, "good n0; leave n1; undecided",
                 "the link between n0 and n1 is faulty"},
             row{false, false, "good; leave; undecided n0 n1",
                 "no two of the nodes work with each other, and none with the master, whose port "
                 "for this a firewall may close; add a node that works"},
         }) {
      const std::string said = why;
      CAPTURE(said);
      story s(with_witness("10.0.0.99"));
      s.two_fail();
      s.group(story::witness, 0, 0.1, first_works ? "" : "n0 did not connect");
      CHECK(s.group(0, 0, 0.1, first_works ? "" : "cut off") == "0: n1 + witness");
      s.group(story::witness, 0, 0.1, second_works ? "" : "n1 did not connect");
      CHECK(s.group(1, 0, 0.1, second_works ? "" : "cut off") == answer);
      CHECK(s.noted(said));
      CHECK(s.noted("2 nodes checked in 4 rounds"));
      CHECK_FALSE(s.noted("troupe-master"));
    }
  }

  TEST_CASE("a master that shares its machine with a node is no third party") {
    story s(with_witness("10.0.0.1"));
    s.begins(2);
    s.probed(0);
    s.probed(1);
    s.group(0, 0, 0, "cut");
    s.group(1, 0, 0, "cut");
    s.group(0, 0, 0, "cut");
    CHECK(s.group(1, 0, 0, "cut") == "good; leave; undecided n0 n1");
  }

  TEST_CASE("a witness that does not answer is silent like a node") {
    story s(with_witness("10.0.0.99"));
    s.two_fail();
    s.group(0, 0, 0.1, "cut off");
    CHECK(s.passes(40s) == "0: n1 + witness");
    CHECK(s.passes(40s) == "good; leave; undecided n0 n1");
  }

  TEST_CASE("what is heard of a round that is over says how slow a silent node was") {
    story s;
    s.begins(4);
    for (std::uint32_t n = 0; n < 3; ++n)
      s.probed(n);
    auto said = s.probed(3);
    while (said.find("good") == std::string::npos) {
      const auto asked = story::asked_in(said);
      const auto round = s.round;
      const auto of_n3 = std::find_if(asked.begin(), asked.end(), [](const auto& a) {
                           return a.second == 3;
                         })->first;
      for (const auto& [group, n] : asked)
        if (group != of_n3)
          s.group(n, group);
      said = s.passes(40s);
      const auto now = std::exchange(s.round, round);
      if (now != round)
        CHECK(s.group(3, of_n3, 0, "after 5.0 s: 1.5 of 25.2 MB had come from n2").empty());
      s.round = now;
    }
    CHECK(said == "mark n3 at 10.0.0.3; good n0 n1 n2; leave n3; undecided");
    CHECK(s.noted("did not end in time with"));
    CHECK(s.noted("it says of the last: after 5.0 s: 1.5 of 25.2 MB had come from n2; it leaves"));
  }

  TEST_CASE("bandwidths are measured among all good nodes, and told by size") {
    network_check_options o;
    o.perf_test_sizes = {1u << 20, 64u << 20};
    story s(o);
    s.begins(2);
    s.probed(0);
    s.probed(1);
    s.group(0, 0);
    CHECK(s.group(1, 0) == "0: n0 n1");
    CHECK(s.asked_sizes == 2);
    s.group(0, 0);
    CHECK(s.group(1, 0) == "good n0 n1; leave; undecided");
    // 1 MiB in 1.001 ms, the slower of both.
    CHECK(s.noted("all-reduce    1 MiB among 2 nodes:      1.00 ms,   1.048 GB/s,   1.048 GB/s on "
                  "the bus (ring over TCP)"));
    CHECK(s.noted("all-gather   64 MiB among 2 nodes:      1.00 ms,  67.109 GB/s,  33.554 GB/s on "
                  "the bus (ring over TCP)"));
  }

  TEST_CASE("devices that have one library reduce and gather by it, and bandwidths count them") {
    network_check_options o;
    o.perf_test_sizes = {1u << 20};
    story s(o);
    s.libraries = {{0, "NCCL 2.27.3"}, {1, "NCCL 2.27.3"}};
    s.begins(2);
    s.probed(0);
    s.probed(1);
    CHECK(s.devices == "n0:0+8/16 n1:8+8/16 ");
    CHECK(s.largest == limits::check_device_bytes);
    CHECK(s.repeats == limits::check_device_repeats);
    s.group(0, 0);
    s.group(1, 0);
    CHECK(s.devices == "n0:0+8/16 n1:8+8/16 ");
    CHECK(s.largest == 1u << 20);
    s.group(0, 0);
    s.group(1, 0);
    // 2 · 15/16 and 15/16: of 16 devices, not of 2 nodes.
    CHECK(s.noted("all-reduce    1 MiB among 2 nodes:      1.00 ms,   1.048 GB/s,   1.964 GB/s on "
                  "the bus (NCCL 2.27.3, 16 devices)"));
    CHECK(s.noted("all-gather    1 MiB among 2 nodes:      0.50 ms,   2.097 GB/s,   1.966 GB/s on "
                  "the bus (NCCL 2.27.3, 16 devices)"));
  }

  TEST_CASE("members that have no library in common use their ring") {
    const auto asked = [](std::map<std::uint32_t, std::string> libraries, std::uint32_t ranks) {
      story s;
      s.libraries = std::move(libraries);
      s.ranks = ranks;
      s.begins(2);
      s.probed(0);
      s.probed(1);
      CHECK(s.largest == limits::check_bytes);
      CHECK(s.repeats == limits::check_repeats);
      return s.devices;
    };
    const std::string ring = "n0:0+0/0 n1:0+0/0 ";
    CHECK(asked({}, 0) == ring);
    CHECK(asked({{0, "NCCL 2.27.3"}}, 8) == ring);
    CHECK(asked({{1, "NCCL 2.27.3"}}, 8) == ring);
    CHECK(asked({{0, "NCCL 2.27.3"}, {1, "NCCL 2.26.2"}}, 8) == ring);
    // An older build has the library, and does not know of groups by it.
    CHECK(asked({{0, "NCCL 2.27.3"}, {1, "NCCL 2.27.3"}}, 0) == ring);
    CHECK(asked({{0, "NCCL 2.27.3"}, {1, "NCCL 2.27.3"}}, 65) == ring);
  }

  TEST_CASE("the rate of copies is kept only while others train") {
    for (const bool alone : {false, true}) {
      story s;
      s.begins(2, alone);
      s.probed(0);
      s.probed(1);
      CHECK(s.paced == alone);
    }
  }

  TEST_CASE("members of a large group are told of their neighbours only") {
    network_check_options o;
    o.perf_test_sizes = {1u << 20};
    story s(o);
    s.begins(4);
    std::string asked;
    for (std::uint32_t n = 0; n < 4; ++n)
      asked = s.probed(n);
    const std::string all = "0: n0 n1 n2 n3";
    for (int rounds = 0; rounds < 8 && asked != all; ++rounds) {
      CHECK(s.told.second == 0);
      asked = s.all_pass(asked);
    }
    CHECK(asked == all);
    CHECK(s.told == std::pair<std::string, std::uint32_t>("n2", 4));
  }

  TEST_CASE("bandwidths that could not be measured are told as that") {
    network_check_options o;
    o.perf_test_sizes = {1u << 20};
    story s(o);
    s.begins(2);
    s.probed(0);
    s.probed(1);
    s.group(0, 0);
    s.group(1, 0);
    s.asked_sizes = 0;
    s.group(0, 0, 0, "the link was lost");
    CHECK(s.group(1, 0, 0, "the link was lost") == "good n0 n1; leave; undecided");
    CHECK(s.noted("bandwidths among 2 nodes could not be measured"));
  }
}
