#include "launch/shell/stacks_lines.hpp"

#include "diag/stacks/ordered_stacks.hpp"
#include "diag/stacks/stack_files.hpp"
#include "runtime/os/log/printable.hpp"

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

namespace troupe::launch {

namespace {

/// More is for the picture.
constexpr std::size_t lines_max = 5'000;
constexpr std::size_t missing_shown = 20;
constexpr std::size_t runs_shown = 16;

std::string ranks_text(const diag::rank_set& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", ranks.text(runs_shown));
}

std::string threads_text(std::uint64_t count) {
  return fmt::format("{} thread{}", count, count == 1 ? "" : "s");
}

/// "train.py:12 (step)"; the lines of several ranks are joined.
std::string frame_text(const diag::stack_trie::frame& f, const diag::line_set& lines) {
  const std::string source(f.source.empty() ? "??" : f.source);
  std::string at;
  for (const auto number : lines.lines)
    if (number != 0)
      at += fmt::format("{}{}", at.empty() ? ":" : "/", number);
  return os::printable(fmt::format("{} ({}{}{})", f.function.empty() ? "??" : f.function, source,
                                   at, lines.more ? "/..." : ""));
}

class tree_text {
 public:
  explicit tree_text(const diag::stack_trie& trie) : trie_(trie), rows_(diag::ordered(trie).rows) {}

  std::string whole() {
    count_children();
    indents_.resize(rows_.size());
    std::size_t left = 0;
    for (const bool states : {true, false})
      for (std::uint32_t i = 0; i < rows_.size(); ++i)
        if (is_state(i) == states) {
          if (lines_ >= lines_max)
            ++left;
          else
            states ? add_state(i) : add(i);
        }
    if (left > 0)
      fmt::format_to(std::back_inserter(out_), "{} further frames are in the pictures\n", left);
    return std::move(out_);
  }

 private:
  const diag::stack_trie::node& node_of(std::uint32_t row) const {
    return trie_.nodes()[rows_[row].node];
  }
  bool is_state(std::uint32_t row) const {
    return rows_[row].depth == 0 && diag::is_state(trie_.frame_at(node_of(row).frame));
  }

  void count_children() {
    children_.assign(rows_.size(), 0);
    for (const auto& row : rows_)
      if (row.depth > 0)
        ++children_[row.parent];
  }

  void add(std::uint32_t i) {
    const auto& n = node_of(i);
    const auto frame = trie_.frame_at(n.frame);
    const auto parent = rows_[i].parent;
    if (parent != i)
      indents_[i] = indents_[parent];
    if (parent == i || children_[parent] > 1 || node_of(parent).ended > 0) {
      line(indents_[i], fmt::format("{}{}, {}", parent == i ? "" : "+ ", ranks_text(n.ranks),
                                    threads_text(n.threads)));
      indents_[i] += 2;
    }
    line(indents_[i],
         frame_text(frame, n.lines) + (n.ended > 0 && children_[i] > 0
                                           ? fmt::format("  <- {} here", threads_text(n.ended))
                                           : ""));
  }

  /// What the kernel says of threads; of a helping process, what it is for.
  void add_state(std::uint32_t i) {
    const auto& n = node_of(i);
    const auto frame = trie_.frame_at(n.frame);
    const auto role = diag::role_of_state(frame);
    line(0,
         os::printable(fmt::format("{}{}{}: {}, {}", ranks_text(n.ranks), role.empty() ? "" : ", ",
                                   role, frame.source, threads_text(n.threads))));
  }

  void line(std::size_t indent, const std::string& text) {
    ++lines_;
    out_.append(indent, ' ').append(text).append("\n");
  }

  const diag::stack_trie& trie_;
  const std::vector<diag::ordered_stacks::row> rows_;
  std::vector<std::uint32_t> children_;
  std::vector<std::size_t> indents_; ///< of what stands below a row
  std::size_t lines_ = 0;
  std::string out_;
};

} // namespace

std::string stack_lines(const diag::stack_trie& trie) {
  return tree_text(trie).whole();
}

std::string stacks_text(const stacks_seen& seen, bool tree) {
  const auto& s = seen.stacks;
  std::string out;
  auto to = std::back_inserter(out);
  if (s.world_size == 0)
    return out;
  fmt::format_to(to, "stacks of {} of {} ranks", s.ranks.size(), s.world_size);
  if (!seen.directory.empty())
    fmt::format_to(to, ": {}/py_stack.svg and cpp_stack.svg", os::printable(seen.directory));
  out += '\n';
  if (const auto absent = s.absent(); !absent.empty())
    fmt::format_to(to, "nothing of {}\n", ranks_text(absent));
  std::size_t told = 0;
  for (const auto& [what, of] : s.missing) {
    if (told++ == missing_shown) {
      fmt::format_to(to, "{} further lines of what is missing are in stacks.json\n",
                     s.missing.size() - missing_shown);
      break;
    }
    fmt::format_to(to, "missing{}: {}\n", of.empty() ? "" : " of " + ranks_text(of),
                   os::printable(what));
  }
  if (tree && !s.ranks.empty())
    out += '\n' + (s.python.nodes().size() > 1 ? stack_lines(s.python)
                                               : std::string("no process runs Python\n"));
  return out;
}

std::string stacks_json(const stacks_seen& seen) {
  auto document =
      boost::json::serialize(boost::json::object{{"schema", stacks_schema},
                                                 {"directory", os::valid_utf8(seen.directory)},
                                                 {"why", os::valid_utf8(seen.why)}});
  document.pop_back();
  auto stacks = diag::to_json(seen.stacks);
  // Line ends are between its parts only: those of texts are escaped.
  stacks.erase(std::remove(stacks.begin(), stacks.end(), '\n'), stacks.end());
  return document + ",\"stacks\":" + stacks + "}";
}

} // namespace troupe::launch
