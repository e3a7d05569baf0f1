#include "actors/master/network_check/network_check_core_plan.hpp"

#include <algorithm>
#include <tuple>

namespace troupe::actors::network_check {
namespace {

/// One round while it is made: each node is in one group at most.
class draft {
 public:
  explicit draft(const evidence& e) : e_(e), used_(e.nodes.size(), false) {}

  void add(node_index a, node_index b) {
    used_[a] = used_[b] = true;
    out_.push_back({a, b});
  }
  /// Gives `a` the first of `choice` that is free and was not its partner yet. What is used at the
  /// front of `choice` is skipped for good: `from` moves on.
  bool pair_with_first(node_index a, const std::vector<node_index>& choice, std::size_t& from) {
    while (from < choice.size() && used_[choice[from]])
      ++from;
    for (auto i = from; i < choice.size(); ++i)
      if (const auto b = choice[i]; b != a && !used_[b] && !e_.between(a, b)) {
        add(a, b);
        return true;
      }
    return false;
  }
  bool used(node_index a) const { return used_[a]; }
  groups& out() { return out_; }

 private:
  const evidence& e_;
  std::vector<bool> used_;
  groups out_;
};

groups neighbours(const evidence& e) {
  groups out;
  for (node_index i = 0; i < e.nodes.size(); ++i) {
    if (!e.nodes[i].here || e.is_witness(i))
      continue;
    if (out.empty() || out.back().size() == 2)
      out.emplace_back();
    out.back().push_back(i);
  }
  if (out.size() > 1 && out.back().size() == 1) {
    const auto odd = out.back().front();
    out.pop_back();
    out.back().push_back(odd);
  }
  if (!out.empty() && out.back().size() == 1)
    out.clear();
  return out;
}

std::vector<node_index> sorted_by_time(const evidence& e, bool cleared) {
  std::vector<node_index> all;
  for (node_index i = 0; i < e.nodes.size(); ++i)
    if (const auto& n = e.nodes[i];
        n.here && !n.decided && n.cleared == cleared && !e.is_witness(i))
      all.push_back(i);
  std::stable_sort(all.begin(), all.end(),
                   [&](node_index a, node_index b) { return e.nodes[a].best < e.nodes[b].best; });
  return all;
}

/// Cleared nodes first; a suspect for which none is left is tried with another suspect: a group of
/// two good ones clears both.
void probe_suspects(draft& d, const evidence& e, const std::vector<node_index>& cleared) {
  auto suspects = sorted_by_time(e, false);
  std::reverse(suspects.begin(), suspects.end());
  // Equally bad ones in order of rank, those nearest to their decision first.
  std::stable_sort(suspects.begin(), suspects.end(), [&](node_index a, node_index b) {
    const auto& first = e.nodes[a];
    const auto& second = e.nodes[b];
    return std::tuple(first.passed, -static_cast<int>(first.witnesses), -first.best, a) <
           std::tuple(second.passed, -static_cast<int>(second.witnesses), -second.best, b);
  });
  std::size_t from = 0;
  for (const auto s : suspects)
    d.pair_with_first(s, cleared, from);
  from = 0;
  for (const auto s : suspects)
    if (!d.used(s))
      d.pair_with_first(s, suspects, from);
}

void probe_open_links(draft& d, const evidence& e) {
  for (std::size_t t = 0; t < e.threes.size(); ++t)
    for (const auto a : e.threes[t])
      for (const auto b : e.threes[t])
        if (a < b && !d.used(a) && !d.used(b) && is_open_link(e, t, a, b))
          d.add(a, b);
  for (node_index a = 0; a < e.nodes.size(); ++a)
    for (const auto& m : e.nodes[a].partners)
      if (a < m.partner && !d.used(a) && !d.used(m.partner) && m.tries < link_failures_needed &&
          failed_alone(e, a, m))
        d.add(a, m.partner);
}

/// The last two may have been partners already: the group before them gives them others.
void exchange_partners(groups& out, std::size_t first_own, const evidence& e) {
  if (out.size() < first_own + 2)
    return;
  auto& last = out.back();
  if (!e.between(last[0], last[1]))
    return;
  for (auto i = out.size() - 1; i-- > first_own;) {
    auto& other = out[i];
    for (const std::size_t which : {1u, 0u})
      if (!e.between(last[0], other[which]) && !e.between(last[1], other[1 - which])) {
        std::swap(last[1], other[which]);
        return;
      }
  }
}

/// All that are left, fastest with slowest; an odd one joins the last pair.
void mix(draft& d, const evidence& e, const std::vector<node_index>& cleared) {
  std::vector<node_index> left;
  for (const auto c : cleared)
    if (!d.used(c))
      left.push_back(c);
  if (left.size() < 2)
    return;
  const auto slowest_first = std::vector<node_index>(left.rbegin(), left.rend());
  const auto first_own = d.out().size();
  const bool odd = left.size() % 2 == 1;
  const auto middle = left[left.size() / 2];
  if (odd)
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(left.size() / 2));
  std::vector<node_index> choice;
  for (const auto c : slowest_first)
    if (!odd || c != middle)
      choice.push_back(c);
  std::size_t from = 0;
  for (const auto c : left)
    if (!d.used(c) && !d.pair_with_first(c, choice, from))
      for (const auto other : choice)
        if (other != c && !d.used(other)) {
          d.add(c, other);
          break;
        }
  exchange_partners(d.out(), first_own, e);
  if (odd)
    d.out().back().push_back(middle);
}

/// Links between nodes that work and that were not partners yet.
void probe_unused_links(draft& d, const std::vector<node_index>& cleared) {
  auto in_order = cleared;
  std::sort(in_order.begin(), in_order.end());
  std::size_t from = 0;
  for (const auto a : in_order)
    if (!d.used(a))
      d.pair_with_first(a, in_order, from);
}

/// What is left of the ring of all ranks: training uses these links all the time.
void probe_ring(draft& d, const evidence& e) {
  std::vector<node_index> ring;
  for (node_index n = 0; n < e.nodes.size(); ++n)
    if (e.nodes[n].cleared && !e.is_witness(n))
      ring.push_back(n);
  for (std::size_t i = 1; i <= ring.size(); ++i)
    if (const auto a = ring[i % ring.size()], b = ring[(i + 1) % ring.size()];
        a != b && !d.used(a) && !d.used(b) && !e.between(a, b))
      d.add(a, b);
}

} // namespace

groups plan(const evidence& e, std::size_t round_number, const policy& with) {
  if (round_number == 0)
    return neighbours(e);
  draft d(e);
  const auto cleared = sorted_by_time(e, true);
  probe_suspects(d, e, cleared);
  probe_open_links(d, e);
  // Three nodes have used all their links in round 0.
  if (round_number == 1 && e.here > 3)
    mix(d, e, cleared);
  if (round_number >= 2 && e.here > 3)
    probe_ring(d, e);
  if (round_number >= 2 && e.here <= with.all_links_up_to)
    probe_unused_links(d, cleared);
  return std::move(d.out());
}

/// One suspect at a time: a witness is in one group at a time, and once one is cleared, the others
/// have a partner of their own.
groups plan_with_witness(const evidence& e) {
  if (!e.witness || e.here < 2)
    return {};
  for (node_index n = 0; n < e.nodes.size(); ++n)
    if (e.is_open_suspect(n) && !e.between(n, *e.witness))
      return {{n, *e.witness}};
  return {};
}

} // namespace troupe::actors::network_check
