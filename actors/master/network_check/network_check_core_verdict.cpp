#include "actors/master/network_check/network_check_core_verdict.hpp"

#include "actors/master/network_check/network_check_core_links.hpp"
#include "actors/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace troupe::actors::network_check {
namespace {

/// One verdict while it is made.
struct judging {
  const history& so_far;
  const evidence& e;
  const policy& with;
  verdict out;
  std::vector<bool> slow;
  std::vector<bool> leaves;
  std::vector<bool> candidate;

  const node_name& name(node_index n) const { return so_far.nodes[n]; }
  bool beyond_median(double seconds) const { return is_slow(seconds, e.median, with); }
};

std::vector<node_name> names(const judging& j, const std::vector<node_index>& nodes) {
  std::vector<node_name> out;
  for (const auto n : nodes)
    out.push_back(j.name(n));
  return out;
}

std::string times_median(const judging& j, double seconds, double median) {
  return fmt::format("{:.3g} s, {:.1f} x the median of {:.3g} s (limit {:.3g} x)", seconds,
                     median > 0 ? seconds / median : 0, median, j.with.straggler_factor);
}

void add_faulty(judging& j, node_index n, std::string why) {
  j.leaves[n] = true;
  j.out.findings.push_back({finding::kind::faulty_node,
                            {n},
                            0,
                            0,
                            fmt::format("node {} is faulty: {}; it leaves", j.name(n), why)});
}

/// What was heard in its last probe with one that works: from itself, else from that one.
std::string last_words(const judging& j, node_index n) {
  for (auto r = j.so_far.rounds.rbegin(); r != j.so_far.rounds.rend(); ++r)
    for (const auto& g : *r) {
      const auto at = static_cast<std::size_t>(std::find(g.members.begin(), g.members.end(), n) -
                                               g.members.begin());
      if (at == g.members.size())
        continue;
      for (std::size_t i = 0; i < g.members.size(); ++i) {
        const auto speaker = (at + i) % g.members.size();
        if (speaker < g.results.size() && g.members[speaker] < j.e.nodes.size() &&
            !g.results[speaker].why.empty())
          return fmt::format("; {}: {}",
                             speaker == at ? "it says of the last"
                                           : j.name(g.members[speaker]) + " says of the last",
                             g.results[speaker].why);
      }
    }
  return {};
}

std::string failed_with(const judging& j, node_index n) {
  std::vector<node_index> witnesses;
  bool answered = false;
  for (const auto& m : j.e.nodes[n].partners)
    if (j.e.nodes[m.partner].cleared) {
      witnesses.push_back(m.partner);
      answered = answered || m.answered;
    }
  std::sort(witnesses.begin(), witnesses.end());
  const bool by_witness = std::any_of(witnesses.begin(), witnesses.end(),
                                      [&j](node_index w) { return j.e.is_witness(w); });
  return fmt::format(
      "its probes {} {}, which work with {}{}{}",
      answered ? "failed with" : "did not end in time with", few_of(names(j, witnesses)),
      by_witness ? "others" : "other nodes",
      witnesses.size() < j.with.witnesses ? " (or each of its links to them is faulty)" : "",
      last_words(j, n));
}

std::string own_failure(const probe_result& r) {
  if (r.what == probe_result::kind::silent)
    return "its own probe did not end in time";
  return r.why.empty() ? "its own probe failed" : r.why;
}

void find_faulty_nodes(judging& j) {
  for (node_index n = 0; n < j.e.nodes.size(); ++n) {
    const auto& node = j.e.nodes[n];
    if (!node.here)
      add_faulty(j, n, own_failure(*j.so_far.alone[n]));
    else if (node.decided && !node.passed)
      add_faulty(j, n, failed_with(j, n));
  }
}

void add_slow(judging& j, node_index n, const char* in_what, double seconds, double median) {
  if (j.slow[n] || j.leaves[n])
    return;
  j.slow[n] = true;
  j.leaves[n] = j.with.exclude_straggler;
  j.out.findings.push_back({finding::kind::slow_node,
                            {n},
                            seconds,
                            median,
                            fmt::format("node {} is slow: {} takes {}", j.name(n), in_what,
                                        times_median(j, seconds, median))});
}

void find_slow_nodes(judging& j) {
  std::vector<double> own;
  for (const auto& r : j.so_far.alone)
    if (r && passed(*r))
      own.push_back(r->seconds);
  const auto median = quantile(own, 0.5);
  for (node_index n = 0; n < j.e.nodes.size(); ++n) {
    const auto& node = j.e.nodes[n];
    if (n < j.so_far.alone.size() && j.so_far.alone[n] && node.here &&
        is_slow(j.so_far.alone[n]->seconds, median, j.with))
      add_slow(j, n, "its own probe", j.so_far.alone[n]->seconds, median);
    if (node.decided && node.passed && j.beyond_median(node.best))
      add_slow(j, n, "its best probe with others", node.best, j.e.median);
  }
}

std::vector<link> links(const judging& j, finding::kind what) {
  std::vector<link> out;
  for (node_index n = 0; n < j.e.nodes.size(); ++n)
    for (const auto& m : j.e.nodes[n].partners) {
      if (m.partner < n)
        continue;
      const auto& first = j.e.nodes[n];
      const auto& second = j.e.nodes[m.partner];
      const bool is_faulty = failed_alone(j.e, n, m) && first.passed && second.passed &&
                             m.tries >= link_failures_needed;
      const bool is_slow =
          m.what == outcome::slow && first.cleared && second.cleared && j.beyond_median(m.seconds);
      if (what == finding::kind::faulty_link ? is_faulty : is_slow)
        out.emplace_back(n, m.partner);
    }
  std::sort(out.begin(), out.end());
  return out;
}

void find_faulty_links(judging& j) {
  const auto all = links(j, finding::kind::faulty_link);
  std::vector<link> both_stay;
  for (const auto& l : all)
    if (!j.leaves[l.first] && !j.leaves[l.second])
      both_stay.push_back(l);
  for (const auto n : fewest_ends(both_stay, j.slow))
    j.leaves[n] = true;
  for (const auto& [a, b] : all) {
    const auto leaving = j.leaves[b] ? b : a;
    j.out.findings.push_back(
        {finding::kind::faulty_link,
         {a, b},
         0,
         0,
         fmt::format(
             "the link between {} and {} is faulty: they failed together twice, and each works "
             "with another node; {} leaves",
             j.name(a), j.name(b), j.name(leaving))});
  }
}

void find_slow_links(judging& j) {
  for (const auto& [a, b] : links(j, finding::kind::slow_link)) {
    const auto seconds = j.e.between(a, b)->seconds;
    j.out.findings.push_back(
        {finding::kind::slow_link,
         {a, b},
         seconds,
         j.e.median,
         fmt::format("the link between {} and {} is slow: {}, and each is faster with another node",
                     j.name(a), j.name(b), times_median(j, seconds, j.e.median))});
  }
}

/// A slow node, and an end of a slow link, may leave for a broken link: so this comes last.
void tell_what_becomes_of_slow_ones(judging& j) {
  for (auto& f : j.out.findings) {
    if (f.what != finding::kind::slow_node && f.what != finding::kind::slow_link)
      continue;
    std::vector<node_index> leaving;
    std::copy_if(f.nodes.begin(), f.nodes.end(), std::back_inserter(leaving),
                 [&j](node_index n) { return j.leaves[n]; });
    if (f.what == finding::kind::slow_node)
      f.reason += leaving.empty() ? "; it stays" : "; it leaves";
    else
      f.reason += leaving.empty()      ? "; both stay"
                  : leaving.size() > 1 ? "; both leave"
                                       : fmt::format("; {} leaves", j.name(leaving.front()));
  }
}

/// What was in a group that failed and in none that passed; and links that were to be probed when
/// the rounds were used up.
std::vector<node_index> candidates(judging& j) {
  std::vector<node_index> out;
  for (node_index n = 0; n < j.e.nodes.size(); ++n)
    j.candidate[n] = j.e.is_open_suspect(n) && !j.so_far.rounds.empty() && j.e.here > 1;
  for (std::size_t t = 0; t < j.e.threes.size(); ++t)
    for (const auto a : j.e.threes[t])
      for (const auto b : j.e.threes[t])
        if (a < b && j.e.of_threes[t] == outcome::failed && is_open_link(j.e, t, a, b) &&
            !j.leaves[a] && !j.leaves[b])
          j.candidate[a] = j.candidate[b] = true;
  for (node_index n = 0; n < j.e.nodes.size(); ++n)
    for (const auto& m : j.e.nodes[n].partners)
      if (m.tries < link_failures_needed && failed_alone(j.e, n, m) && !j.leaves[n] &&
          !j.leaves[m.partner])
        j.candidate[n] = j.candidate[m.partner] = true;
  for (node_index n = 0; n < j.e.nodes.size(); ++n)
    if (j.candidate[n] && !j.leaves[n])
      out.push_back(n);
  return out;
}

/// Why none of them is cleared, and what to do.
std::string none_works(const judging& j, const std::vector<node_index>& all) {
  const bool witness_asked = j.e.witness && std::any_of(all.begin(), all.end(), [&j](node_index n) {
                               return j.e.between(n, *j.e.witness) != nullptr;
                             });
  return fmt::format(
      "no two of the nodes work with each other{}; add a node that works",
      witness_asked ? fmt::format(", and none with {}, whose port for this a firewall may close",
                                  j.name(*j.e.witness))
                    : "");
}

void find_undecidable(judging& j) {
  const auto all = candidates(j);
  if (all.empty())
    return;
  j.out.findings.push_back(
      {finding::kind::undecidable, all, 0, 0,
       fmt::format("{} failed, and it cannot be told which node or link it was: {}",
                   few_of(names(j, all)),
                   j.e.cleared == 0 ? none_works(j, all)
                                    : fmt::format("{} were not enough; allow more rounds",
                                                  counted(j.so_far.rounds.size(), "round")))});
}

void sum_up(judging& j) {
  for (node_index n = 0; n < j.e.nodes.size(); ++n)
    if (j.leaves[n])
      j.out.leave.push_back(n);
    else if (!j.candidate[n] && !j.e.is_witness(n))
      j.out.good.push_back(n);
  const auto checked =
      fmt::format("{} checked in {}", counted(j.e.nodes.size() - j.e.witness.has_value(), "node"),
                  counted(j.so_far.rounds.size(), "round"));
  if (j.out.findings.empty())
    j.out.summary = checked + ": all are good";
  else
    j.out.summary =
        fmt::format("{}: {} good, {} leaving{}, {}", checked, j.out.good.size(), j.out.leave.size(),
                    j.out.leave.empty() ? "" : fmt::format(" ({})", few_of(names(j, j.out.leave))),
                    counted(j.out.findings.size(), "finding"));
  for (node_index n = 0; n < j.leaves.size(); ++n)
    if (j.e.here == 1 && j.e.nodes[n].here && !j.e.is_witness(n))
      j.out.summary += fmt::format("; {} had no partner", j.name(n));
}

} // namespace

verdict judge(const history& so_far, const evidence& e, const policy& with) {
  const auto count = e.nodes.size();
  judging j{so_far, e, with, {}, {}, {}, {}};
  j.slow.resize(count);
  j.leaves.resize(count);
  j.candidate.resize(count);
  find_faulty_nodes(j);
  find_slow_nodes(j);
  find_faulty_links(j);
  find_slow_links(j);
  tell_what_becomes_of_slow_ones(j);
  find_undecidable(j);
  std::stable_sort(j.out.findings.begin(), j.out.findings.end(),
                   [](const finding& a, const finding& b) { return a.what < b.what; });
  sum_up(j);
  return std::move(j.out);
}

} // namespace troupe::actors::network_check
