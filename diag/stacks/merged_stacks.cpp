#include "diag/stacks/merged_stacks.hpp"

#include <algorithm>
#include <utility>

namespace troupe::diag {

namespace {

constexpr std::string_view state_function = "State", state_of = "State of ";

void add_thread(stack_trie& trie, const process_stacks& process, char state,
                const std::vector<stack_frame>& innermost_first) {
  trie.add(process.rank, {{state_frame(trie, process.role, state), 0}});
  if (innermost_first.empty())
    return;
  std::vector<stack_trie::step> steps;
  steps.reserve(innermost_first.size() + 1);
  if (!process.role.empty())
    steps.push_back({role_frame(trie, process.role), 0});
  for (auto f = innermost_first.rbegin(); f != innermost_first.rend(); ++f)
    steps.push_back({trie.frame_of(f->function, f->source), f->line});
  trie.add(process.rank, steps);
}

} // namespace

stack_trie::frame_id state_frame(stack_trie& trie, std::string_view role, char state) {
  std::string function(role.empty() ? state_function : state_of);
  return trie.frame_of(function.append(role), state_name(state));
}

bool is_state(const stack_trie::frame& f) {
  return (f.function == state_function || f.function.substr(0, state_of.size()) == state_of) &&
         !f.source.empty() && state_name(f.source.front()) == f.source;
}

std::string_view role_of_state(const stack_trie::frame& f) {
  return f.function.substr(std::min(f.function.size(), state_of.size()));
}

stack_trie::frame_id role_frame(stack_trie& trie, std::string_view role) {
  return trie.frame_of(role, "child process");
}

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
    // A thread without frames is shown by its state alone; one that has no Python is no Python's.
    if (!t.native.empty() || t.python.empty())
      add_thread(native, process, t.state, t.native);
    if (!t.python.empty())
      add_thread(python, process, t.state, t.python);
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
