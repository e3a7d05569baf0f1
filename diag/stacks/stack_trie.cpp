#include "diag/stacks/stack_trie.hpp"

#include <algorithm>
#include <limits>

namespace troupe::diag {

namespace {

std::uint64_t both(std::uint32_t high, std::uint32_t low) {
  return std::uint64_t{high} << 32 | low;
}

/// Counts come from other processes.
void count(std::uint64_t& sum, std::uint64_t more) {
  const auto room = std::numeric_limits<std::uint64_t>::max() - sum;
  sum += std::min(room, more);
}

/// Link-time optimization numbers what it moves, each build differently.
std::string_view without_number(std::string_view function) {
  const auto at = function.find(".lto_priv.");
  return at == std::string_view::npos ? function : function.substr(0, at);
}

/// The beginning of it, if it is too long; in UTF-8 no character is torn apart.
std::string_view shortened(std::string_view name) {
  if (name.size() <= limits::stack_name_max)
    return name;
  auto end = limits::stack_name_max;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80)
    --end;
  return name.substr(0, end);
}

} // namespace

std::size_t number_table::place_of(std::uint64_t key) const {
  // Fibonacci hashing: only the highest bits of the product depend on all of the key.
  auto at = static_cast<std::size_t>((key * 0x9e37'79b9'7f4a'7c15) >> shift_);
  const auto mask = entries_.size() - 1;
  for (; entries_[at].value != none && entries_[at].key != key; at = (at + 1) & mask) {
  }
  return at;
}

std::uint32_t number_table::find(std::uint64_t key) const {
  return entries_[place_of(key)].value;
}

void number_table::add(std::uint64_t key, std::uint32_t value) {
  if (used_ * 2 >= entries_.size())
    grow();
  entries_[place_of(key)] = {key, value};
  ++used_;
}

void number_table::grow() {
  std::vector<entry> old(entries_.size() * 2);
  old.swap(entries_);
  --shift_;
  for (const auto& e : old)
    if (e.value != none)
      entries_[place_of(e.key)] = e;
}

void line_set::add(std::uint32_t line) {
  if (line == 0 || lines[0] == line)
    return;
  for (auto& known : lines) {
    if (known == line || line == 0)
      return;
    if (known == 0 || line < known)
      std::swap(known, line);
  }
  more = more || line != 0;
}

void line_set::add(const line_set& others) {
  for (const auto line : others.lines)
    add(line);
  more = more || others.more;
}

stack_trie::stack_trie(std::size_t nodes_max, std::size_t names_bytes_max)
    : nodes_max_(nodes_max), names_bytes_max_(names_bytes_max), nodes_(1) {
  names_.emplace_back();
  by_name_.emplace(names_.back(), 0);
  frames_.emplace_back(0, 0);
  by_frame_.add(0, unknown_frame);
}

stack_trie::name_id stack_trie::intern(std::string_view name) {
  name = shortened(name);
  if (const auto known = by_name_.find(name); known != by_name_.end())
    return known->second;
  if (names_bytes_ + name.size() > names_bytes_max_ || names_.size() >= 2 * nodes_max_) {
    ++left_out_.names;
    return 0;
  }
  names_bytes_ += name.size();
  const auto id = static_cast<name_id>(names_.size());
  names_.emplace_back(name);
  by_name_.emplace(names_.back(), id);
  return id;
}

stack_trie::frame_id stack_trie::frame_of(std::string_view function, std::string_view source) {
  const std::pair what{intern(without_number(function)), intern(source)};
  const auto key = both(what.first, what.second);
  if (const auto known = by_frame_.find(key); known != number_table::none)
    return known;
  if (frames_.size() >= 2 * nodes_max_) {
    ++left_out_.names;
    return unknown_frame;
  }
  const auto id = static_cast<frame_id>(frames_.size());
  frames_.push_back(what);
  by_frame_.add(key, id);
  return id;
}

stack_trie::frame stack_trie::frame_at(frame_id id) const {
  const auto& [function, source] = frames_[id];
  return {names_[function], names_[source]};
}

stack_trie::node_id stack_trie::child(node_id parent, frame_id what) {
  const auto key = both(parent, what);
  if (const auto known = by_step_.find(key); known != number_table::none)
    return known;
  if (nodes_.size() >= nodes_max_)
    return root;
  const auto id = static_cast<node_id>(nodes_.size());
  nodes_.push_back({parent, what, 0, 0, {}, {}});
  by_step_.add(key, id);
  return id;
}

bool stack_trie::add_to(node_id at, const rank_set& ranks, const line_set& lines,
                        std::uint64_t threads, std::uint64_t ended) {
  auto& here = nodes_[at];
  const auto before = here.ranks.runs().size();
  if (!has_room_for_runs(ranks.runs().size()))
    return false;
  here.ranks.add(ranks);
  runs_ = runs_ + here.ranks.runs().size() - before;
  here.lines.add(lines);
  count(here.threads, threads);
  count(here.ended, ended);
  return true;
}

void stack_trie::add(std::uint32_t rank, const std::vector<step>& stack) {
  if (stack.size() <= limits::stack_frames_max)
    return add_whole(rank, stack.data(), stack.size());
  constexpr auto behind = limits::stack_innermost_kept;
  constexpr auto outermost = static_cast<std::ptrdiff_t>(limits::stack_frames_max - 1 - behind);
  std::vector<step> fewer(stack.begin(), stack.begin() + outermost);
  fewer.push_back({frame_of(gap, {}), 0});
  fewer.insert(fewer.end(), stack.end() - static_cast<std::ptrdiff_t>(behind), stack.end());
  ++left_out_.deep;
  add_whole(rank, fewer.data(), fewer.size());
}

void stack_trie::add_whole(std::uint32_t rank, const step* from, std::size_t count_of_steps) {
  node_id at = root;
  for (const auto* s = from; s != from + count_of_steps; ++s) {
    const auto next = has_room_for_runs(1) ? child(at, s->frame) : root;
    if (next == root) {
      ++left_out_.full;
      break;
    }
    at = next;
    auto& here = nodes_[at];
    const auto before = here.ranks.runs().size();
    here.ranks.add(rank);
    runs_ = runs_ + here.ranks.runs().size() - before;
    here.lines.add(s->line);
    count(here.threads, 1);
  }
  if (at != root)
    count(nodes_[at].ended, 1);
}

void stack_trie::merge(const stack_trie& other) {
  constexpr frame_id unknown = number_table::none;
  left_out_.add(other.left_out_);
  std::vector<frame_id> frame_here(other.frames_.size(), unknown);
  std::vector<node_id> node_here(other.nodes_.size(), root);
  for (node_id theirs = 1; theirs < other.nodes_.size(); ++theirs) {
    const auto& n = other.nodes_[theirs];
    const auto parent = node_here[n.parent];
    if (parent == root && n.parent != root)
      continue; // left out, and told, above
    auto& what = frame_here[n.frame];
    if (what == unknown) {
      const auto f = other.frame_at(n.frame);
      what = frame_of(f.function, f.source);
    }
    const auto mine = child(parent, what);
    if (mine == root || !add_to(mine, n.ranks, n.lines, n.threads, n.ended)) {
      count(left_out_.full, n.threads);
      if (parent != root)
        count(nodes_[parent].ended, n.threads);
      continue;
    }
    node_here[theirs] = mine;
  }
}

} // namespace troupe::diag
