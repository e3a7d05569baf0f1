#include "tests/actors/network_check_world.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

using namespace troupe;
using namespace troupe::testing::network_check_world;

namespace {

/// Something that may be wrong: a node or a link, broken or slow.
struct fault {
  bool slow = false;
  ends at; ///< of a node: it twice
};

std::vector<fault> faults_among(node_index nodes) {
  std::vector<fault> all;
  for (const bool slow : {false, true})
    for (node_index a = 0; a < nodes; ++a)
      for (node_index b = a; b < nodes; ++b)
        all.push_back({slow, {a, b}});
  return all;
}

void put(truth& t, const fault& f) {
  if (f.at.first == f.at.second)
    (f.slow ? t.slow : t.broken).insert(f.at.first);
  else
    (f.slow ? t.slow_links : t.broken_links).insert(f.at);
}

/// How one rule did over many truths. "Wrong": it works, and has a link that shows it.
struct rule_tally {
  std::size_t broken = 0, cut_off = 0, wrong = 0, wrong_checks = 0, slow = 0, wrong_slow = 0,
              links = 0;

  template<class Faulty, class Slow>
  void add(const truth& t, const Faulty& faulty, const Slow& slow_ones, std::size_t found_links) {
    const auto wrong_before = wrong;
    for (const auto n : faulty)
      ++(t.broken.count(n) ? broken : t.cuts_off(n) ? cut_off : wrong);
    wrong_checks += wrong > wrong_before;
    for (const auto n : slow_ones)
      ++(t.slow.count(n) || t.cuts_off(n) ? slow : wrong_slow);
    links += found_links;
  }
  std::string in_words() const {
    return fmt::format(
        "{} broken nodes named, {} nodes that work called faulty in {} checks (and {} "
        "that are cut off), {} slow nodes named and {} wrongly, {} links named",
        broken, wrong, wrong_checks, cut_off, slow, wrong_slow, links);
  }
};

struct tally {
  std::size_t checks = 0, undecidable = 0;
  std::map<std::size_t, std::size_t> by_rounds;
  std::size_t broken = 0, slow = 0, links = 0;
  rule_tally ours, peers;

  void add(const truth& t, const outcome_of_check& done) {
    ++checks;
    ++by_rounds[done.all.rounds.size()];
    broken += t.broken.size();
    slow += t.slow.size();
    links += t.broken_links.size() + t.slow_links.size();
    std::vector<node_index> faulty, slow_ones;
    std::size_t found_links = 0;
    for (const auto& f : done.said.findings) {
      undecidable += f.what == finding::kind::undecidable;
      if (f.what == finding::kind::faulty_node)
        faulty.push_back(f.nodes.front());
      if (f.what == finding::kind::slow_node)
        slow_ones.push_back(f.nodes.front());
      found_links += f.what == finding::kind::faulty_link || f.what == finding::kind::slow_link;
    }
    ours.add(t, faulty, slow_ones, found_links);
    const auto peer = peer_check(t);
    peers.add(t, peer.faulty, peer.slow, 0);
  }
  std::string in_words() const {
    std::string spread;
    for (const auto& [count, times] : by_rounds)
      spread += fmt::format("{}{} in {}", spread.empty() ? "" : ", ", times, count);
    return fmt::format("{} checks with {} broken nodes, {} slow nodes, {} such links\n"
                       "  rounds: {}; {} undecidable\n  ours: {}\n  peer's rule, 2 rounds: {}",
                       checks, broken, slow, links, spread, undecidable, ours.in_words(),
                       peers.in_words());
  }
};

void hold(tally& sum, const truth& t, const policy& with = {}) {
  const auto done = check(t, with);
  sum.add(t, done);
  const auto wrong = broken_promise(t, done);
  REQUIRE_MESSAGE(wrong.empty(),
                  fmt::format("{} [{}; {}]", wrong, t.in_words(), done.said.summary));
}

/// A truth with all patterns of at most two faults put into it, one after the other.
template<class F>
void for_patterns(node_index nodes, F&& f) {
  const auto all = faults_among(nodes);
  for (std::size_t i = 0; i <= all.size(); ++i)
    for (std::size_t j = i; j <= all.size(); ++j) {
      const bool none = i == all.size();
      if (!none && j != i && j < all.size() && all[i].at == all[j].at)
        continue; // broken and slow at once is broken
      truth t;
      t.nodes = nodes;
      if (!none)
        put(t, all[i]);
      if (!none && j != i && j < all.size())
        put(t, all[j]);
      if (none || j < all.size())
        f(t);
    }
}

/// All sets of the first `nodes`.
template<class F>
void for_sets(node_index nodes, F&& f) {
  for (unsigned bits = 0; bits < 1u << nodes; ++bits) {
    std::set<node_index> set;
    for (node_index n = 0; n < nodes; ++n)
      if (bits >> n & 1)
        set.insert(n);
    f(set);
  }
}

/// With which nodes the witness was probed, in order.
std::vector<node_index> asked_about(const outcome_of_check& done) {
  std::vector<node_index> all;
  for (const auto& r : done.all.rounds)
    for (const auto& g : r)
      if (g.members.back() == *done.all.witness)
        all.push_back(g.members.front());
  return all;
}

bool is_undecided(const outcome_of_check& done) {
  return std::any_of(done.said.findings.begin(), done.said.findings.end(),
                     [](const finding& f) { return f.what == finding::kind::undecidable; });
}

std::string reasons(const outcome_of_check& done) {
  std::string all = done.said.summary;
  for (const auto& f : done.said.findings)
    all += "; " + f.reason;
  return all;
}

/// The check of `t` with its witness keeps its promises, asks it only where nothing else tells, and
/// decides nothing otherwise than without it where it is not asked.
void hold_with_witness(tally& sum, truth t) {
  t.witness = false;
  const auto without = check(t, {});
  t.witness = true;
  const auto with = check(t, {});
  sum.add(t, with);
  const auto wrong = broken_promise(t, with);
  REQUIRE_MESSAGE(wrong.empty(), fmt::format("{} [{}; {}]", wrong, t.in_words(), reasons(with)));
  const auto why =
      fmt::format("[{}; {}; without: {}]", t.in_words(), reasons(with), reasons(without));
  const auto asked = asked_about(with);
  REQUIRE_MESSAGE(!asked.empty() == is_undecided(without), why);
  REQUIRE_MESSAGE(std::set<node_index>(asked.begin(), asked.end()).size() == asked.size(), why);
  if (asked.empty())
    REQUIRE_MESSAGE(reasons(with) == reasons(without), why);
}

/// Of so many nodes; half of the links are between neighbours, which round 0 sees.
struct amounts {
  std::size_t broken = 0, slow = 0, links = 0;
};

truth random_truth(node_index nodes, const amounts& of, std::uint64_t seed) {
  random_source random(seed);
  truth t;
  t.nodes = nodes;
  t.seed = seed;
  const auto any = [&] { return static_cast<node_index>(random.below(nodes)); };
  while (t.broken.size() < of.broken)
    t.broken.insert(any());
  while (t.slow.size() < of.slow)
    if (const auto n = any(); !t.broken.count(n))
      t.slow.insert(n);
  while (t.broken_links.size() < of.links) {
    const auto a = any();
    const ends l = std::minmax(a, random.chance(0.5) ? a ^ 1u : any());
    if (l.first != l.second && l.second < nodes)
      t.broken_links.insert(l);
  }
  return t;
}

} // namespace

TEST_SUITE("network_check patterns") {
  TEST_CASE("every pattern of two faults or fewer among two to eight nodes") {
    for (node_index nodes = 2; nodes <= 8; ++nodes) {
      tally sum;
      for_patterns(nodes, [&](truth t) {
        for (const auto own : {own_probes::absent, own_probes::blind, own_probes::seeing})
          for (const std::uint64_t seed : {1, 2}) {
            t.own = own;
            t.seed = seed;
            hold(sum, t);
          }
      });
      MESSAGE(fmt::format("{} nodes: {}", nodes, sum.in_words()));
      // From four nodes on, two of them work with each other whatever two faults there are.
      if (nodes > 3)
        CHECK(sum.undecidable == 0);
    }
  }

  TEST_CASE("with a witness: every pattern of two faults or fewer, and whatever is closed to it") {
    for (node_index nodes = 2; nodes <= 6; ++nodes) {
      tally sum;
      for_patterns(nodes, [&](truth t) {
        for (const auto own : {own_probes::absent, own_probes::blind, own_probes::seeing})
          for_sets(nodes, [&](const std::set<node_index>& closed) {
            t.own = own;
            t.witness_is_closed_to = closed;
            hold_with_witness(sum, t);
          });
      });
      MESSAGE(fmt::format("{} nodes and a witness: {}", nodes, sum.in_words()));
    }
  }

  TEST_CASE("with a witness: nodes of which no two work with each other") {
    // All links are broken, and any of the nodes as well.
    for (node_index nodes = 2; nodes <= 5; ++nodes) {
      tally sum;
      truth t;
      t.nodes = nodes;
      for (node_index a = 0; a < nodes; ++a)
        for (node_index b = a + 1; b < nodes; ++b)
          t.broken_links.insert({a, b});
      for_sets(nodes, [&](const std::set<node_index>& broken) {
        for_sets(nodes, [&](const std::set<node_index>& closed) {
          t.broken = broken;
          t.witness_is_closed_to = closed;
          hold_with_witness(sum, t);
        });
      });
      MESSAGE(fmt::format("{} nodes and a witness: {}", nodes, sum.in_words()));
    }
  }

  TEST_CASE("two nodes and a witness: which of them is broken, or their link") {
    truth t;
    t.nodes = 2;
    t.witness = true;
    const auto found = [&t](finding::kind what, const std::vector<node_index>& at) {
      const auto done = check(t, {});
      INFO(reasons(done));
      REQUIRE(done.said.findings.size() == 1);
      CHECK(done.said.findings.front().what == what);
      CHECK(done.said.findings.front().nodes == at);
      CHECK(done.said.leave == std::vector<node_index>{at.back()});
      CHECK(done.said.good ==
            std::vector<node_index>{at == std::vector<node_index>{1} || at.size() > 1 ? 0u : 1u});
    };
    for (const node_index broken : {0u, 1u}) {
      t.broken = {broken};
      found(finding::kind::faulty_node, {broken});
    }
    t.broken = {};
    t.broken_links = {{0, 1}};
    found(finding::kind::faulty_link, {0, 1});
  }

  TEST_CASE("two nodes that a witness reaches neither of: nothing is blamed") {
    truth t;
    t.nodes = 2;
    t.witness = true;
    t.witness_is_closed_to = {0, 1};
    t.broken_links = {{0, 1}};
    const auto done = check(t, {});
    CHECK(done.said.leave.empty());
    REQUIRE(done.said.findings.size() == 1);
    CHECK(done.said.findings.front().reason ==
          "n0, n1 failed, and it cannot be told which node or link it was: no two of the nodes "
          "work with each other, and none with the witness, whose port for this a firewall may "
          "close; add a node that works");
  }

  TEST_CASE("every pattern of three broken nodes or links, with witnesses and rounds to match") {
    policy thorough;
    thorough.witnesses = 8;
    thorough.rounds_max = 24;
    for (node_index nodes = 3; nodes <= 7; ++nodes) {
      tally sum;
      const auto all = faults_among(nodes);
      const auto broken = all.size() / 2; // the slow ones come after them
      for (std::size_t i = 0; i < broken; ++i)
        for (std::size_t j = i + 1; j < broken; ++j)
          for (std::size_t k = j + 1; k < broken; ++k) {
            truth t;
            t.nodes = nodes;
            for (const auto f : {i, j, k})
              put(t, all[f]);
            hold(sum, t, thorough);
          }
      MESSAGE(fmt::format("{} nodes: {}", nodes, sum.in_words()));
    }
  }

  TEST_CASE("with fewer rounds than it takes no node is blamed in error") {
    for (const unsigned rounds : {1u, 2u, 3u}) {
      policy hasty;
      hasty.rounds_max = rounds;
      tally sum;
      for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        const auto t = random_truth(40, {4, 2, 4}, seed);
        const auto done = check(t, hasty);
        sum.add(t, done);
        const auto wrong = false_or_hidden(t, done);
        REQUIRE_MESSAGE(wrong.empty(), fmt::format("{} [{}]", wrong, t.in_words()));
      }
      MESSAGE(fmt::format("at most {} rounds: {}", rounds, sum.in_words()));
    }
  }

  TEST_CASE("one in a hundred nodes broken, and as many slow nodes and broken links") {
    for (const node_index nodes : {16u, 100u, 333u, 1'024u}) {
      const std::size_t some = std::max(1u, nodes / 100);
      tally only_broken, mixed;
      for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        hold(only_broken, random_truth(nodes, {some, 0, 0}, seed));
        hold(mixed, random_truth(nodes, {some, some, some}, seed));
      }
      MESSAGE(fmt::format("{} nodes, only broken nodes: {}", nodes, only_broken.in_words()));
      MESSAGE(fmt::format("{} nodes, all kinds: {}", nodes, mixed.in_words()));
    }
  }

  TEST_CASE("one in ten nodes broken") {
    for (const node_index nodes : {20u, 101u, 512u}) {
      tally sum;
      for (std::uint64_t seed = 1; seed <= 20; ++seed)
        hold(sum, random_truth(nodes, {nodes / 10, 0, 0}, seed));
      MESSAGE(fmt::format("{} nodes: {}", nodes, sum.in_words()));
    }
  }

  TEST_CASE("half of the nodes broken") {
    tally sum;
    for (std::uint64_t seed = 1; seed <= 50; ++seed)
      hold(sum, random_truth(64, {32, 0, 0}, seed));
    MESSAGE(sum.in_words());
  }

  TEST_CASE("the largest job: the rounds and what they find") {
    tally sum;
    const auto t = random_truth(16'384, {164, 0, 20}, 7);
    const auto done = check(t, {});
    sum.add(t, done);
    MESSAGE(sum.in_words());
    CHECK(sum.ours.broken == 164);
    CHECK(sum.ours.wrong == 0);
    CHECK(sum.undecidable == 0);
  }
}
