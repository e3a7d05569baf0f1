#include "diag/stacks/merged_stacks.hpp"

#include <algorithm>
#include <utility>

namespace troupe::diag {

namespace {

std::vector<stack_trie::step> steps_of(stack_trie& trie, stack_trie::frame_id state,
                                       const std::vector<stack_frame>& innermost_first) {
  std::vector<stack_trie::step> steps;
  steps.reserve(innermost_first.size() + 1);
  steps.push_back({state, 0});
  for (auto f = innermost_first.rbegin(); f != innermost_first.rend(); ++f)
    steps.push_back({trie.frame_of(f->function, f->source), f->line});
  return steps;
}

} // namespace

std::string state_name(char state) {
  switch (state) {
  case 'R':
    return "R (running)";
  case 'S':
    return "S (sleeping)";
  case 'D':
    return "D (disk sleep)";
  case 'T':
    return "T (stopped)";
  case 't':
    return "t (tracing stop)";
  case 'Z':
    return "Z (zombie)";
  case 'X':
    return "X (dead)";
  case 'I':
    return "I (idle)";
  default:
    return "?";
  }
}

std::string missing_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  if (text.size() <= limits::missing_line_max)
    return text;
  auto end = limits::missing_line_max - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;
  return text.substr(0, end) + "...";
}

void merged_stacks::add_missing(const std::string& what, const rank_set& of) {
  const auto line = missing_line(what);
  if (missing.size() >= limits::missing_lines_max && missing.count(line) == 0)
    missing_more.add(of);
  else
    missing[line].add(of);
}

void merged_stacks::add(const process_stacks& process) {
  rank_set rank;
  rank.add(process.rank);
  ranks.add(rank);
  world_size = std::max(world_size, process.world_size);
  for (const auto& what : process.missing)
    add_missing(what, rank);
  for (const auto& t : process.threads) {
    const auto function = process.role.empty() ? std::string("State") : process.role;
    const auto state = state_name(t.state);
    // A thread without frames is shown by its state alone; one that has no Python is no Python's.
    if (!t.native.empty() || t.python.empty())
      native.add(process.rank, steps_of(native, native.frame_of(function, state), t.native));
    if (!t.python.empty())
      python.add(process.rank, steps_of(python, python.frame_of(function, state), t.python));
    if (!t.missing.empty())
      add_missing(t.missing, rank);
  }
}

void merged_stacks::merge(const merged_stacks& other) {
  world_size = std::max(world_size, other.world_size);
  ranks.add(other.ranks);
  native.merge(other.native);
  python.merge(other.python);
  for (const auto& [what, of] : other.missing)
    add_missing(what, of);
  missing_more.add(other.missing_more);
}

} // namespace troupe::diag
