#include "actors/master/network_check/network_check_core.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

using namespace troupe;
using namespace troupe::actors::network_check;

namespace {

/// Seconds that a group takes; negative: it fails.
using behaviour = std::function<double(const std::vector<node_index>&)>;

bool has(const std::vector<node_index>& group, node_index n) {
  return std::find(group.begin(), group.end(), n) != group.end();
}

history of_nodes(std::size_t count) {
  history h;
  for (std::size_t i = 0; i < count; ++i)
    h.nodes.push_back(fmt::format("n{}", i));
  h.alone.resize(count);
  return h;
}

/// "0+1 2+3+4", or nothing where there is a verdict.
std::string text(const std::variant<groups, verdict>& step) {
  std::string out;
  if (const auto* all = std::get_if<groups>(&step))
    for (const auto& g : *all)
      out += fmt::format("{}{}", out.empty() ? "" : " ", fmt::join(g, "+"));
  return out;
}

std::vector<std::string> first(std::size_t n, std::vector<std::string> rounds) {
  rounds.resize(std::min(n, rounds.size()));
  return rounds;
}

struct told {
  std::vector<std::string> rounds;
  verdict said;

  std::string reasons() const {
    std::string out;
    for (const auto& f : said.findings)
      out += fmt::format("{}{}", out.empty() ? "" : "\n", f.reason);
    return out;
  }
};

told run(history h, const behaviour& takes, const policy& with = {}) {
  told out;
  for (;;) {
    auto step = next_step(h, with);
    if (auto* v = std::get_if<verdict>(&step)) {
      out.said = std::move(*v);
      return out;
    }
    out.rounds.push_back(text(step));
    h.rounds.emplace_back();
    for (const auto& members : std::get<groups>(step)) {
      const auto seconds = takes(members);
      const auto what = seconds < 0 ? probe_result::kind::failed : probe_result::kind::passed;
      h.rounds.back().push_back({members, {members.size(), probe_result{what, seconds}}});
    }
  }
}

behaviour broken(node_index n) {
  return [n](const auto& group) { return has(group, n) ? -1.0 : 1.0; };
}

behaviour broken_link(node_index a, node_index b) {
  return [a, b](const auto& group) { return has(group, a) && has(group, b) ? -1.0 : 1.0; };
}

behaviour slow(node_index n, double times) {
  return [n, times](const auto& group) { return has(group, n) ? times : 1.0; };
}

using lines = std::vector<std::string>;

} // namespace

TEST_SUITE("network_check_core") {
  TEST_CASE("round 0 pairs neighbours, and an odd node joins the last pair") {
    CHECK(text(next_step(of_nodes(2), {})) == "0+1");
    CHECK(text(next_step(of_nodes(3), {})) == "0+1+2");
    CHECK(text(next_step(of_nodes(4), {})) == "0+1 2+3");
    CHECK(text(next_step(of_nodes(7), {})) == "0+1 2+3 4+5+6");
  }

  TEST_CASE("round 1 pairs the fastest with the slowest, and new partners only") {
    const auto each = [](const auto& group) { return 1 + 0.1 * group.front(); };
    const auto done = run(of_nodes(8), each);
    CHECK(first(2, done.rounds) == lines{"0+1 2+3 4+5 6+7", "0+7 1+6 2+5 3+4"});
    CHECK(done.said.good.size() == 8);
    CHECK(first(2, run(of_nodes(5), each).rounds) == lines{"0+1 2+3+4", "0+4 1+3+2"});
  }

  TEST_CASE("of few nodes every link is used, and of many the ring's") {
    for (node_index nodes = 2; nodes <= 33; ++nodes) {
      std::set<std::pair<node_index, node_index>> used;
      const auto done = run(of_nodes(nodes), [&used](const auto& group) {
        for (const auto a : group)
          for (const auto b : group)
            if (a < b)
              used.emplace(a, b);
        return 1.0;
      });
      CAPTURE(nodes);
      if (nodes <= policy{}.all_links_up_to) {
        CHECK(used.size() == nodes * (nodes - 1) / 2);
        CHECK(done.rounds.size() <= nodes + 1);
      } else {
        CHECK(done.rounds.size() == 3);
      }
      for (node_index n = 0; n < nodes; ++n) {
        const auto next = (n + 1) % nodes;
        CHECK(used.count({std::min(n, next), std::max(n, next)}) == 1);
      }
    }
  }

  TEST_CASE("where fastest with slowest would pair partners again, two pairs exchange theirs") {
    // By time: 2 3 0 1 4 5, so 0 and 1 are left for each other.
    const auto done = run(of_nodes(6), [](const auto& group) {
      return group.front() == 2 ? 1.0 : group.front() == 0 ? 1.1 : 1.2;
    });
    CHECK(first(2, done.rounds) == lines{"0+1 2+3 4+5", "2+5 3+1 0+4"});
  }

  TEST_CASE("two and three nodes that work need one round, and one or none need none") {
    CHECK(run(of_nodes(0), broken(9)).rounds.empty());
    const auto one = run(of_nodes(1), broken(9));
    CHECK(one.rounds.empty());
    CHECK(one.said.summary == "1 node checked in 0 rounds: all are good; n0 had no partner");
    CHECK(run(of_nodes(2), broken(9)).rounds.size() == 1);
    CHECK(run(of_nodes(3), broken(9)).rounds.size() == 1);
  }

  TEST_CASE("of two nodes that fail with each other it cannot be told which is broken") {
    const auto done = run(of_nodes(2), broken(1));
    CHECK(done.reasons() ==
          "n0, n1 failed, and it cannot be told which node or link it was: no two of the nodes "
          "work with each other; add a node that works");
    CHECK(done.said.leave.empty());
    CHECK(done.said.good.empty());
  }

  TEST_CASE("a node whose own probe fails is faulty, and is in no group") {
    auto h = of_nodes(3);
    h.alone[1] = probe_result{probe_result::kind::failed, 0};
    auto done = run(h, broken(1));
    CHECK(done.rounds == lines{"0+2"});
    CHECK(done.reasons() == "node n1 is faulty: its own probe failed; it leaves");
    CHECK(done.said.leave == std::vector<node_index>{1});
    CHECK(done.said.summary == "3 nodes checked in 1 round: 2 good, 1 leaving (n1), 1 finding");
    h.alone[1] = probe_result{};
    done = run(h, broken(1));
    CHECK(done.reasons() == "node n1 is faulty: its own probe did not end in time; it leaves");
  }

  TEST_CASE("of three nodes the one that works with neither of two is named") {
    const auto done = run(of_nodes(3), broken(1));
    CHECK(done.rounds == lines{"0+1+2", "0+1", "0+2", "1+2"});
    CHECK(done.reasons() ==
          "node n1 is faulty: its probes failed with n0, n2, which work with other nodes (or each "
          "of its links to them is faulty); it leaves");
  }

  TEST_CASE("a suspect meets nodes that work, and its partner of round 0 is cleared") {
    const auto done = run(of_nodes(6), broken(2));
    CHECK(first(2, done.rounds) == lines{"0+1 2+3 4+5", "2+0 3+1 4+5"});
    CHECK(done.rounds[2].find("2+1") == 0);
    CHECK(done.said.leave == std::vector<node_index>{2});
    CHECK(done.said.good == std::vector<node_index>{0, 1, 3, 4, 5});
  }

  TEST_CASE("a node that is silent is a result like another") {
    auto h = of_nodes(4);
    const auto done = [&] {
      for (;;) {
        auto step = next_step(h, {});
        if (auto* v = std::get_if<verdict>(&step))
          return *v;
        h.rounds.emplace_back();
        for (const auto& members : std::get<groups>(step))
          h.rounds.back().push_back(
              {members,
               {members.size(), probe_result{has(members, 3) ? probe_result::kind::silent
                                                             : probe_result::kind::passed,
                                             1}}});
      }
    }();
    REQUIRE(done.findings.size() == 1);
    CHECK(done.findings[0].reason ==
          "node n3 is faulty: its probes did not end in time with n0, n1, n2, "
          "which work with other nodes; it leaves");
  }

  TEST_CASE("two nodes that work and fail with each other have a faulty link; one leaves") {
    const auto done = run(of_nodes(4), broken_link(0, 1));
    CHECK(done.reasons() == "the link between n0 and n1 is faulty: they failed together twice, and "
                            "each works with another node; n1 leaves");
    CHECK(done.said.leave == std::vector<node_index>{1});
  }

  TEST_CASE("a failure that has passed by the next round costs no node") {
    for (std::size_t nodes = 2; nodes <= 8; ++nodes)
      for (int which = 0; which < 12; ++which) {
        CAPTURE(nodes);
        CAPTURE(which);
        int probes = 0;
        const auto done =
            run(of_nodes(nodes), [&](const auto&) { return probes++ == which ? -1.0 : 1.0; });
        CHECK(done.reasons().empty());
        CHECK(done.said.good.size() == nodes);
      }
  }

  TEST_CASE("a faulty link within a group of three is found") {
    const auto done = run(of_nodes(5), broken_link(2, 4));
    CHECK(done.said.findings.size() == 1);
    CHECK(done.said.findings.at(0).nodes == std::vector<node_index>{2, 4});
  }

  TEST_CASE("slow is more than the factor times the median") {
    CHECK(run(of_nodes(4), slow(2, 1.9)).said.findings.empty());
    const auto done = run(of_nodes(4), slow(2, 2.1));
    CHECK(done.reasons() == "node n2 is slow: its best probe with others takes 2.1 s, 2.1 x the "
                            "median of 1 s (limit 2 x); it stays");
    CHECK(done.said.leave.empty());
    policy leaves;
    leaves.exclude_straggler = true;
    CHECK(run(of_nodes(4), slow(2, 2.1), leaves).said.leave == std::vector<node_index>{2});
    policy tolerant;
    tolerant.straggler_factor = 3;
    CHECK(run(of_nodes(4), slow(2, 2.9), tolerant).said.findings.empty());
  }

  TEST_CASE("a node can be slow by its own probe") {
    auto h = of_nodes(4);
    for (node_index n = 0; n < 4; ++n)
      h.alone[n] = probe_result{probe_result::kind::passed, n == 1 ? 5.0 : 1.0};
    CHECK(run(h, broken(9)).reasons() == "node n1 is slow: its own probe takes 5 s, 5.0 x the "
                                         "median of 1 s (limit 2 x); it stays");
  }

  TEST_CASE("a slow node that leaves for a broken link is not said to stay") {
    auto h = of_nodes(4);
    for (node_index n = 0; n < 4; ++n)
      h.alone[n] = probe_result{probe_result::kind::passed, n == 0 ? 5.0 : 1.0};
    const auto done = run(h, broken_link(0, 1));
    CHECK(done.reasons() == "the link between n0 and n1 is faulty: they failed together twice, and "
                            "each works with another node; n0 leaves\n"
                            "node n0 is slow: its own probe takes 5 s, 5.0 x the median of 1 s "
                            "(limit 2 x); it leaves");
    CHECK(done.said.leave == std::vector<node_index>{0});
  }

  TEST_CASE("two nodes that are slow with each other only have a slow link, and stay") {
    const auto done = run(
        of_nodes(4), [](const auto& group) { return has(group, 0) && has(group, 1) ? 4.0 : 1.0; });
    CHECK(done.reasons() == "the link between n0 and n1 is slow: 4 s, 4.0 x the median of 1 s "
                            "(limit 2 x), and each is faster with another node; both stay");
    CHECK(done.said.good.size() == 4);
  }

  TEST_CASE("where the rounds are used up it says so, and blames none") {
    policy two;
    two.rounds_max = 2;
    const auto done = run(of_nodes(6), broken(2), two);
    CHECK(done.reasons() == "n2 failed, and it cannot be told which node or link it was: 2 rounds "
                            "were not enough; allow more rounds");
    CHECK(done.said.leave.empty());
    CHECK(done.said.good == std::vector<node_index>{0, 1, 3, 4, 5});
  }

  TEST_CASE("a job in which nothing works ends within its rounds") {
    const auto done = run(of_nodes(64), [](const auto&) { return -1.0; });
    CHECK(done.rounds.size() == policy{}.rounds_max);
    CHECK(done.said.findings.at(0).nodes.size() == 64);
  }

  TEST_CASE("results that are no results count as failures") {
    auto h = of_nodes(4);
    const auto passed = [](double s) { return probe_result{probe_result::kind::passed, s}; };
    // One result is missing, one is no number, and one is of a node that is not in the job.
    h.rounds.push_back({{{0, 1}, {passed(1)}},
                        {{2, 3}, {passed(1), passed(std::nan(""))}},
                        {{77, 99}, {passed(1), passed(1)}},
                        {{}, {}}});
    const auto next = next_step(h, {});
    CHECK(text(next) == "0+2 1+3");
    policy one;
    one.rounds_max = 1;
    const auto end = next_step(h, one);
    CHECK(std::get<verdict>(end).findings.at(0).nodes.size() == 4);
  }
}
