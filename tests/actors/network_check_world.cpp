#include "tests/actors/network_check_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace troupe::testing::network_check_world {
namespace {

constexpr double failed_time = 3600;

ends link_of(node_index a, node_index b) {
  return std::minmax(a, b);
}

double jitter(random_source& random) {
  return 1 + random.unit() * 0.2;
}

/// How often as long it makes a probe take. Each stays as slow as it is, and any two, or one and
/// none, are well apart or the same: near its factor a rule on ratios can say either.
double slowness(const truth& t, node_index a, node_index b) {
  return (a + 3 * b + t.seed) % 2 == 0 ? 3 : 9;
}

group_result probe(const truth& t, const std::vector<node_index>& members, random_source& random) {
  bool works = true;
  double factor = std::count(members.begin(), members.end(), t.nodes) ? 100 : 1;
  for (const auto a : members) {
    if (t.slow.count(a))
      factor = std::max(factor, slowness(t, a, a));
    for (const auto b : members)
      if (a < b) {
        works = works && t.works(a, b);
        if (t.slow_links.count({a, b}))
          factor = std::max(factor, slowness(t, a, b));
      }
  }
  group_result g;
  g.members = members;
  const auto seconds = jitter(random) * factor;
  for (std::size_t i = 0; i < members.size(); ++i)
    g.results.push_back(works                ? probe_result{probe_result::kind::passed, seconds}
                        : random.chance(0.5) ? probe_result{probe_result::kind::failed, 0}
                                             : probe_result{probe_result::kind::silent, 0});
  return g;
}

std::vector<std::optional<probe_result>> probe_alone(const truth& t, random_source& random) {
  std::vector<std::optional<probe_result>> out(t.nodes);
  if (t.own == own_probes::absent)
    return out;
  const bool sees = t.own == own_probes::seeing;
  for (node_index n = 0; n < t.nodes; ++n)
    if (sees && t.broken.count(n))
      out[n] = random.chance(0.5) ? probe_result{probe_result::kind::failed, 0} : probe_result{};
    else
      out[n] = probe_result{probe_result::kind::passed,
                            jitter(random) * (sees && t.slow.count(n) ? 5 : 1)};
  return out;
}

std::size_t found(const verdict& v, finding::kind what, const std::vector<node_index>& nodes) {
  return static_cast<std::size_t>(
      std::count_if(v.findings.begin(), v.findings.end(),
                    [&](const finding& f) { return f.what == what && f.nodes == nodes; }));
}

bool was_probed(const history& h, node_index a, node_index b) {
  for (const auto& r : h.rounds)
    for (const auto& g : r)
      if (std::count(g.members.begin(), g.members.end(), a) &&
          std::count(g.members.begin(), g.members.end(), b))
        return true;
  return false;
}

bool fast_group_was_probed(const truth& t, const history& h) {
  for (const auto& r : h.rounds)
    for (const auto& g : r) {
      bool all = g.members.size() > 1;
      for (const auto a : g.members)
        for (const auto b : g.members)
          all = all && (a >= b || (t.works(a, b) && t.fast(a, b)));
      if (all)
        return true;
    }
  return false;
}

bool has_reference(const truth& t) {
  for (node_index a = 0; a < t.nodes; ++a)
    for (node_index b = a + 1; b < t.nodes; ++b)
      if (t.works(a, b) && t.fast(a, b))
        return true;
  return false;
}

/// It has another link than that to `except` to a node that works; for speed: to one that is fast.
bool works_elsewhere(const truth& t, const history& h, node_index n, node_index except, bool fast) {
  if (!fast && t.works_with_witness(n) && was_probed(h, n, t.nodes))
    return true;
  for (node_index o = 0; o < t.nodes; ++o)
    if (o != n && o != except && t.works(n, o) && (!fast || t.fast(n, o)))
      return true;
  return false;
}

std::string false_finding(const truth& t, const outcome_of_check& done) {
  const auto& v = done.said;
  const auto cut_off = [&](node_index n) {
    return t.cuts_off(n) && !(t.works_with_witness(n) && was_probed(done.all, n, t.nodes));
  };
  for (const auto& f : v.findings) {
    const auto first = f.nodes.front();
    for (const auto n : f.nodes)
      if (n >= t.nodes)
        return "about the witness: " + f.reason;
    const auto both = f.nodes.size() == 2 ? link_of(first, f.nodes[1]) : ends{};
    const bool right =
        f.what == finding::kind::faulty_node   ? t.broken.count(first) || cut_off(first)
        : f.what == finding::kind::slow_node   ? t.slow.count(first) || t.cuts_off(first)
        : f.what == finding::kind::faulty_link ? t.broken_links.count(both) > 0
        : f.what == finding::kind::slow_link   ? t.slow_links.count(both) > 0
                                               : !f.nodes.empty();
    if (!right)
      return "not true: " + f.reason;
  }
  return {};
}

bool is_minority_bad(const truth& t) {
  return 2 * (t.slow.size() + t.broken.size()) < t.nodes;
}

/// There is something to compare with, and the median of all is not slow.
bool slowness_shows(const truth& t, const history& h) {
  return is_minority_bad(t) && fast_group_was_probed(t, h);
}

/// No node works with another one, and one does with the witness.
bool only_witness_tells(const truth& t) {
  bool any = false;
  for (node_index a = 0; a < t.nodes; ++a) {
    any = any || t.works_with_witness(a);
    for (node_index b = a + 1; b < t.nodes; ++b)
      if (t.works(a, b))
        return false;
  }
  return any;
}

std::string missed_node(const truth& t, const outcome_of_check& done) {
  const bool reference = (t.nodes > 2 && has_reference(t)) || only_witness_tells(t);
  for (const auto n : t.broken)
    if ((reference || t.own == own_probes::seeing) &&
        !found(done.said, finding::kind::faulty_node, {n}))
      return fmt::format("n{} is broken and was not found", n);
  for (const auto n : t.slow)
    if ((t.own == own_probes::seeing ? is_minority_bad(t) : slowness_shows(t, done.all)) &&
        !found(done.said, finding::kind::slow_node, {n}))
      if (works_elsewhere(t, done.all, n, n, false))
        return fmt::format("n{} is slow and was not found", n);
  return {};
}

std::string missed_link(const truth& t, const outcome_of_check& done) {
  for (const bool slow : {false, true})
    for (const auto& [a, b] : slow ? t.slow_links : t.broken_links)
      if (was_probed(done.all, a, b) && !t.broken.count(a) && !t.broken.count(b) &&
          works_elsewhere(t, done.all, a, b, slow) && works_elsewhere(t, done.all, b, a, slow) &&
          !(slow && (t.slow.count(a) || t.slow.count(b) || !slowness_shows(t, done.all))) &&
          !found(done.said, slow ? finding::kind::slow_link : finding::kind::faulty_link, {a, b}))
        return fmt::format("the {} link n{}-n{} was probed and not found", slow ? "slow" : "broken",
                           a, b);
  return {};
}

/// How many nodes have to leave so that no two stay of which the broken link was probed; those that
/// are broken or cut off leave anyway.
std::size_t fewest_that_leave(const truth& t, const history& h) {
  auto fewest = static_cast<std::size_t>(t.nodes);
  for (unsigned set = 0; set < 1u << t.nodes; ++set) {
    bool suffices = true;
    std::size_t leaving = 0;
    const auto gone = [&](node_index n) { return (set >> n & 1) || t.broken.count(n); };
    for (node_index n = 0; n < t.nodes; ++n)
      leaving += set >> n & 1;
    for (const auto& [a, b] : t.broken_links)
      suffices = suffices && (gone(a) || gone(b) || !was_probed(h, a, b));
    if (suffices)
      fewest = std::min(fewest, leaving);
  }
  return fewest;
}

std::string wrong_leave(const truth& t, const outcome_of_check& done) {
  if (t.nodes > 8)
    return {};
  const auto& good = done.said.good;
  for (const auto a : good)
    for (const auto b : good)
      if (a < b && !t.works(a, b) && was_probed(done.all, a, b))
        return fmt::format("n{} and n{} stay and do not work together", a, b);
  std::size_t working = 0;
  for (const auto n : done.said.leave)
    working += !t.broken.count(n);
  if (const auto fewest = fewest_that_leave(t, done.all); working > fewest)
    return fmt::format("{} nodes that work leave where {} would do", working, fewest);
  return {};
}

using times = std::vector<double>;

times peer_round(const truth& t, const groups& all, random_source& random) {
  times out(t.nodes);
  for (const auto& members : all) {
    const auto g = probe(t, members, random);
    for (std::size_t i = 0; i < members.size(); ++i)
      out[members[i]] =
          g.results[i].what == probe_result::kind::passed ? g.results[i].seconds : failed_time;
  }
  return out;
}

groups pairs_of(const std::vector<node_index>& order) {
  groups out;
  for (std::size_t i = 0; i + 1 < order.size(); i += 2)
    out.push_back({order[i], order[i + 1]});
  if (order.size() % 2 == 1 && !out.empty())
    out.back().push_back(order.back());
  return out;
}

/// a z b y c x …, so that pairs of it are the fastest with the slowest.
std::vector<node_index> from_both_ends(const times& by) {
  std::vector<node_index> sorted(by.size());
  std::iota(sorted.begin(), sorted.end(), node_index{0});
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](node_index a, node_index b) { return by[a] < by[b]; });
  std::vector<node_index> out;
  for (std::size_t i = 0; i < (sorted.size() + 1) / 2; ++i) {
    out.push_back(sorted[i]);
    if (sorted.size() - 1 - i > i)
      out.push_back(sorted[sorted.size() - 1 - i]);
  }
  return out;
}

} // namespace

bool truth::works(node_index a, node_index b) const {
  const auto [first, second] = link_of(a, b);
  if (second == nodes)
    return witness && !broken.count(first) && !witness_is_closed_to.count(first);
  return !broken.count(a) && !broken.count(b) && !broken_links.count({first, second});
}

bool truth::fast(node_index a, node_index b) const {
  return !slow.count(a) && !slow.count(b) && !slow_links.count(link_of(a, b));
}

bool truth::cuts_off(node_index n) const {
  for (node_index o = 0; o < nodes; ++o)
    if (o != n && !broken.count(o) && !slow.count(o) && !broken_links.count(link_of(n, o)) &&
        !slow_links.count(link_of(n, o)))
      return false;
  return true;
}

std::string truth::in_words() const {
  std::string out =
      fmt::format("{} nodes, own probes {}, seed {}", nodes, static_cast<int>(own), seed);
  for (const auto n : broken)
    out += fmt::format(", n{} broken", n);
  for (const auto n : slow)
    out += fmt::format(", n{} slow", n);
  for (const auto& [a, b] : broken_links)
    out += fmt::format(", link n{}-n{} broken", a, b);
  for (const auto& [a, b] : slow_links)
    out += fmt::format(", link n{}-n{} slow", a, b);
  if (witness)
    out += fmt::format(", a witness that is closed to {}", fmt::join(witness_is_closed_to, " "));
  return out;
}

outcome_of_check check(const truth& t, const policy& with) {
  random_source random(t.seed);
  outcome_of_check out;
  for (node_index n = 0; n < t.nodes; ++n)
    out.all.nodes.push_back(fmt::format("n{}", n));
  out.all.alone = probe_alone(t, random);
  if (t.witness) {
    out.all.witness = t.nodes;
    out.all.nodes.emplace_back("the witness");
    out.all.alone.emplace_back();
  }
  for (;;) {
    auto step = next_step(out.all, with);
    if (auto* v = std::get_if<verdict>(&step)) {
      out.said = std::move(*v);
      return out;
    }
    round results;
    for (const auto& members : std::get<groups>(step))
      results.push_back(probe(t, members, random));
    out.all.rounds.push_back(std::move(results));
  }
}

std::string false_or_hidden(const truth& t, const outcome_of_check& done) {
  if (auto wrong = false_finding(t, done); !wrong.empty())
    return wrong;
  for (const auto* all : {&done.said.good, &done.said.leave})
    if (std::count(all->begin(), all->end(), t.nodes))
      return "the witness is one of the nodes";
  for (const auto n : t.broken)
    if (!done.all.rounds.empty() && std::count(done.said.good.begin(), done.said.good.end(), n))
      return fmt::format("n{} is broken and was called good", n);
  return {};
}

std::string broken_promise(const truth& t, const outcome_of_check& done) {
  for (const auto& r : done.all.rounds) {
    std::set<node_index> seen;
    for (const auto& g : r) {
      if (g.members.size() < 2 || g.members.size() > 3)
        return "a group has neither two nor three members";
      for (const auto n : g.members)
        if (!seen.insert(n).second)
          return fmt::format("n{} is in two groups of one round", n);
    }
  }
  for (const auto& said :
       {false_or_hidden(t, done), missed_node(t, done), missed_link(t, done), wrong_leave(t, done)})
    if (!said.empty())
      return said;
  return {};
}

peer_verdict peer_check(const truth& t) {
  random_source random(t.seed);
  std::vector<node_index> order(t.nodes);
  std::iota(order.begin(), order.end(), node_index{0});
  const auto first = peer_round(t, pairs_of(order), random);
  const auto second = peer_round(t, pairs_of(from_both_ends(first)), random);
  peer_verdict out;
  times best;
  for (node_index n = 0; n < t.nodes; ++n) {
    best.push_back(std::min(first[n], second[n]));
    if (best[n] == failed_time)
      out.faulty.insert(n);
  }
  auto sorted = best;
  std::sort(sorted.begin(), sorted.end());
  for (node_index n = 0; n < t.nodes; ++n)
    if (best[n] != failed_time && best[n] > 2 * sorted[sorted.size() / 2])
      out.slow.insert(n);
  if (!out.faulty.empty() && t.nodes <= 3) {
    out.cannot_locate = true;
    out.faulty.insert(order.begin(), order.end());
  }
  return out;
}

} // namespace troupe::testing::network_check_world
