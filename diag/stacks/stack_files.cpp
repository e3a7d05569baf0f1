#include "diag/stacks/stack_files.hpp"

#include "diag/stacks/escaped.hpp"
#include "diag/stacks/ordered_stacks.hpp"

#include <fmt/format.h>

#include <iterator>
#include <vector>

namespace troupe::diag {

namespace {

/// The labels of a chain of frames with the same ranks end alike.
class rank_labels {
 public:
  explicit rank_labels(const rank_set& world) : world_(world) {}
  const std::string& of(const rank_set& here) {
    if (text_.empty() || !(here == last_)) {
      last_ = here;
      text_ = rank_label(here, world_);
    }
    return text_;
  }

 private:
  const rank_set& world_;
  rank_set last_;
  std::string text_;
};

std::string json_of(const left_out& left) {
  return fmt::format(R"({{"deep_stacks":{},"stacks_cut":{},"names":{}}})", left.deep, left.full,
                     left.names);
}

void append_node(std::string& out, const stack_trie& trie, const ordered_stacks::row& row) {
  const auto& n = trie.nodes()[row.node];
  const auto f = trie.frame_at(n.frame);
  auto to = std::back_inserter(out);
  if (row.depth == 0)
    fmt::format_to(to, R"({{"parent":null)");
  else
    fmt::format_to(to, R"({{"parent":{})", row.parent);
  fmt::format_to(to, R"(,"function":"{}","source":"{}","ranks":"{}","threads":{},"ended":{})",
                 for_json(f.function), for_json(f.source), n.ranks.text(), n.threads, n.ended);
  out += ",\"lines\":[";
  for (std::size_t i = 0; i < line_set::kept && n.lines.lines[i] != 0; ++i)
    fmt::format_to(to, "{}{}", i == 0 ? "" : ",", n.lines.lines[i]);
  out += n.lines.more ? "],\"more_lines\":true}" : "]}";
}

void append_trie(std::string& out, const stack_trie& trie) {
  fmt::format_to(std::back_inserter(out), R"({{"left_out":{},"nodes":[)",
                 json_of(trie.was_left_out()));
  const char* between = "\n";
  for (const auto& row : ordered(trie).rows) {
    out += between;
    append_node(out, trie, row);
    between = ",\n";
  }
  out += "]}";
}

} // namespace

std::string folded(const stack_trie& trie, const rank_set& world) {
  std::string out, line;
  std::vector<std::size_t> ends; // of the line's frames, by depth
  rank_labels labels(world);
  std::uint64_t left = 0;
  for (const auto& row : ordered(trie).rows) {
    const auto& n = trie.nodes()[row.node];
    ends.resize(row.depth);
    line.resize(row.depth == 0 ? 0 : ends.back());
    if (row.depth > 0)
      line += ';';
    line += for_folded(frame_name(trie.frame_at(n.frame)));
    line += labels.of(n.ranks);
    ends.push_back(line.size());
    if (n.ended == 0)
      continue;
    if (out.size() + line.size() < limits::folded_bytes_max)
      out.append(line).append(" 1\n");
    else
      ++left;
  }
  if (left > 0)
    fmt::format_to(std::back_inserter(out), "({} further stacks left out) 1\n", left);
  return out;
}

std::string to_json(const merged_stacks& stacks) {
  std::string out;
  auto to = std::back_inserter(out);
  fmt::format_to(to,
                 "{{\"version\":1,\"world_size\":{},\"ranks\":\"{}\",\"absent_ranks\":\"{}\",\n",
                 stacks.world_size, stacks.ranks.text(), stacks.absent().text());
  out += "\"missing\":[";
  const char* between = "";
  for (const auto& [what, of] : stacks.missing) {
    fmt::format_to(to, R"({}{{"what":"{}","ranks":"{}"}})", between, for_json(what), of.text());
    between = ",";
  }
  fmt::format_to(to, "],\n\"missing_more\":\"{}\",\n\"python\":", stacks.missing_more.text());
  append_trie(out, stacks.python);
  out += ",\n\"native\":";
  append_trie(out, stacks.native);
  out += "}\n";
  return out;
}

} // namespace troupe::diag
