#include "actors/master/network_check/network_check_core_evidence.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::actors::network_check {
namespace {

struct weighed_group {
  std::vector<node_index> members;
  std::vector<bool> answered;
  bool passed = true;
  bool with_witness = false;
  double seconds = 0; ///< of its slowest member
};

/// Members that the history does not have are left out, so that no result can name them.
weighed_group weighed(const group_result& g, const evidence& e) {
  weighed_group out;
  for (std::size_t i = 0; i < g.members.size(); ++i) {
    if (g.members[i] >= e.nodes.size() || !e.nodes[g.members[i]].here)
      continue;
    out.with_witness = out.with_witness || e.is_witness(g.members[i]);
    const auto r = i < g.results.size() ? g.results[i] : probe_result{};
    out.members.push_back(g.members[i]);
    out.answered.push_back(r.what != probe_result::kind::silent);
    out.passed = out.passed && passed(r);
    out.seconds = std::max(out.seconds, r.seconds);
  }
  return out;
}

void meet(node_evidence& node, const met& m) {
  const auto known = std::find_if(node.partners.begin(), node.partners.end(),
                                  [&](const met& k) { return k.partner == m.partner; });
  if (known == node.partners.end())
    node.partners.push_back(m);
  else {
    const auto tries = known->tries + 1;
    if (m.what > known->what || (m.what == known->what && m.seconds < known->seconds))
      *known = m;
    known->tries = tries;
  }
}

void enter(evidence& e, const weighed_group& g, outcome what) {
  const auto count = g.members.size();
  if (count > 2 && what != outcome::fast) {
    e.threes.push_back(g.members);
    e.of_threes.push_back(what);
    return;
  }
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t j = 0; j < count; ++j)
      if (i != j)
        meet(e.nodes[g.members[i]], {g.members[j], what, g.seconds, g.answered[i]});
}

std::vector<double> best_results(const evidence& e) {
  std::vector<double> all;
  for (const auto& n : e.nodes)
    if (std::isfinite(n.best))
      all.push_back(n.best);
  return all;
}

/// How fast a probe with the witness is says where the witness is, and nothing about the node.
void take_results(evidence& e, const std::vector<weighed_group>& all) {
  for (const auto& g : all)
    for (const auto member : g.members)
      if (g.passed) {
        auto& node = e.nodes[member];
        node.passed = true;
        if (!g.with_witness)
          node.best = std::min(node.best, g.seconds);
      }
  e.median = quantile(best_results(e), 0.5);
  e.quick = quantile(best_results(e), 0.25);
}

/// How many witnesses are needed follows from how many nodes are cleared, so this comes last.
void decide(evidence& e, const policy& with) {
  const auto needed = std::min<std::size_t>(with.witnesses, e.cleared);
  for (auto& n : e.nodes) {
    if (!n.here || n.cleared || (e.witness && &n == &e.nodes[*e.witness]))
      continue;
    n.witnesses = static_cast<unsigned>(
        std::count_if(n.partners.begin(), n.partners.end(),
                      [&](const met& m) { return e.nodes[m.partner].cleared; }));
    n.decided = needed > 0 && n.witnesses >= needed;
  }
}

} // namespace

bool passed(const probe_result& r) {
  return r.what == probe_result::kind::passed && std::isfinite(r.seconds) && r.seconds >= 0;
}

bool is_slow(double seconds, double reference, const policy& with) {
  return seconds > with.straggler_factor * reference && seconds - reference > with.slow_by_least;
}

double quantile(std::vector<double> values, double part) {
  if (values.empty())
    return 0;
  const auto at = static_cast<std::ptrdiff_t>(static_cast<double>(values.size() - 1) * part);
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

const met* evidence::between(node_index a, node_index b) const {
  for (const auto& m : nodes[a].partners)
    if (m.partner == b)
      return &m;
  return nullptr;
}

evidence weigh(const history& so_far, const policy& with) {
  evidence e;
  e.nodes.resize(so_far.nodes.size());
  if (so_far.witness && *so_far.witness < e.nodes.size())
    e.witness = so_far.witness;
  for (std::size_t i = 0; i < std::min(so_far.alone.size(), e.nodes.size()); ++i)
    e.nodes[i].here = !so_far.alone[i] || passed(*so_far.alone[i]);
  std::vector<weighed_group> all;
  for (const auto& probed : so_far.rounds)
    for (const auto& g : probed)
      if (auto w = weighed(g, e); w.members.size() > 1)
        all.push_back(std::move(w));
  take_results(e, all);
  for (const auto& g : all) {
    const bool fast = g.passed && (g.with_witness || !is_slow(g.seconds, e.quick, with));
    for (const auto member : g.members)
      e.nodes[member].cleared = e.nodes[member].cleared || fast;
    enter(e, g, fast ? outcome::fast : g.passed ? outcome::slow : outcome::failed);
  }
  for (node_index n = 0; n < e.nodes.size(); ++n) {
    e.here += e.nodes[n].here && !e.is_witness(n);
    e.cleared += e.nodes[n].cleared;
  }
  decide(e, with);
  return e;
}

bool failed_alone(const evidence& e, node_index a, const met& m) {
  if (e.is_witness(a) || e.is_witness(m.partner))
    return false;
  // Two nodes have no other partners that would show that they work.
  return m.what == outcome::failed &&
         (e.here == 2 || (e.nodes[a].passed && e.nodes[m.partner].passed));
}

bool is_open_link(const evidence& e, std::size_t three, node_index a, node_index b) {
  const auto& first = e.nodes[a];
  const auto& second = e.nodes[b];
  const bool ends_work = e.of_threes[three] == outcome::failed ? first.passed && second.passed
                                                               : first.cleared && second.cleared;
  return ends_work && !e.between(a, b);
}

} // namespace troupe::actors::network_check
