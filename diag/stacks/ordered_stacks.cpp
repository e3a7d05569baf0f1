#include "diag/stacks/ordered_stacks.hpp"

#include <algorithm>
#include <tuple>

namespace troupe::diag {

namespace {

/// The children of each node, as a list of numbers and where each node's begin.
struct children {
  std::vector<std::uint32_t> begin;
  std::vector<stack_trie::node_id> all;
};

children children_of(const stack_trie& trie) {
  const auto& nodes = trie.nodes();
  children c;
  c.begin.assign(nodes.size() + 1, 0);
  for (std::size_t i = 1; i < nodes.size(); ++i)
    ++c.begin[nodes[i].parent + 1];
  for (std::size_t i = 1; i < c.begin.size(); ++i)
    c.begin[i] += c.begin[i - 1];
  c.all.resize(nodes.size() - 1);
  auto next = c.begin;
  for (std::size_t i = 1; i < nodes.size(); ++i)
    c.all[next[nodes[i].parent]++] = static_cast<stack_trie::node_id>(i);
  return c;
}

void sort_siblings(const stack_trie& trie, children& c) {
  const auto& nodes = trie.nodes();
  std::vector<std::size_t> ranks(nodes.size());
  for (std::size_t i = 1; i < nodes.size(); ++i)
    ranks[i] = nodes[i].ranks.size();
  const auto before = [&](stack_trie::node_id a, stack_trie::node_id b) {
    const auto f = trie.frame_at(nodes[a].frame), g = trie.frame_at(nodes[b].frame);
    return std::tie(ranks[a], f.function, f.source) < std::tie(ranks[b], g.function, g.source);
  };
  for (std::size_t i = 0; i + 1 < c.begin.size(); ++i)
    std::sort(c.all.begin() + c.begin[i], c.all.begin() + c.begin[i + 1], before);
}

/// Of each node: the different stacks through it. Children come behind their parents.
std::vector<std::uint64_t> stacks_through(const stack_trie& trie) {
  const auto& nodes = trie.nodes();
  std::vector<std::uint64_t> through(nodes.size());
  for (auto i = nodes.size(); i-- > 1;) {
    through[i] += nodes[i].ended > 0 ? 1 : 0;
    through[nodes[i].parent] += through[i];
  }
  return through;
}

} // namespace

ordered_stacks ordered(const stack_trie& trie) {
  auto c = children_of(trie);
  sort_siblings(trie, c);
  const auto through = stacks_through(trie);
  ordered_stacks out;
  out.stacks = through[stack_trie::root];
  out.rows.reserve(trie.nodes().size() - 1);
  std::vector<ordered_stacks::row> waiting;
  const auto push = [&](stack_trie::node_id parent, std::uint32_t row, std::uint32_t depth,
                        std::uint64_t begin) {
    const auto first = waiting.size();
    for (auto i = c.begin[parent]; i < c.begin[parent + 1]; ++i) {
      waiting.push_back({c.all[i], depth, row, begin, through[c.all[i]]});
      begin += through[c.all[i]];
    }
    std::reverse(waiting.begin() + static_cast<std::ptrdiff_t>(first), waiting.end());
  };
  push(stack_trie::root, 0, 0, 0);
  while (!waiting.empty()) {
    auto row = waiting.back();
    waiting.pop_back();
    const auto place = static_cast<std::uint32_t>(out.rows.size());
    if (row.depth == 0) {
      row.parent = place;
      if (const auto& n = trie.nodes()[row.node]; is_state(trie.frame_at(n.frame))) {
        ++out.states;
        out.threads += n.threads;
      }
    }
    out.depth = std::max(out.depth, row.depth + 1);
    out.rows.push_back(row);
    push(row.node, place, row.depth + 1, row.begin);
  }
  return out;
}

std::string frame_name(const stack_trie::frame& f) {
  std::string name(f.function.empty() ? "??" : f.function);
  name += '@';
  name += f.source.empty() ? "??" : f.source;
  return name;
}

std::string rank_label(const rank_set& here, const rank_set& world) {
  return '@' + here.text(limits::label_runs_max) + '|' +
         here.missing_of(world).text(limits::label_runs_max);
}

} // namespace troupe::diag
