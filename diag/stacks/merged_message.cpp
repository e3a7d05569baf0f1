#include "diag/stacks/merged_message.hpp"

#include "diag/stacks/text_of.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace troupe::diag {

namespace {

using numbers = std::vector<std::uint32_t>;
using run_list = capnp::List<std::uint32_t>;
constexpr std::uint32_t none = number_table::none;
constexpr std::uint8_t more_lines = 0x80;

template<class Builder, class Values>
void fill(Builder out, const Values& values) {
  for (unsigned i = 0; i < out.size(); ++i)
    out.set(i, values[i]);
}

unsigned size_of(const numbers& n) {
  return static_cast<unsigned>(n.size());
}

void append_runs(numbers& out, const rank_set& ranks, std::size_t runs_max) {
  for (const auto& r : ranks.runs()) {
    if (runs_max-- == 0)
      return;
    out.push_back(r.first);
    out.push_back(r.last);
  }
}

numbers runs_of(const rank_set& ranks, std::size_t runs_max = limits::ranks_max) {
  numbers out;
  append_runs(out, ranks, runs_max);
  return out;
}

/// A trie as lists, from the root outwards until there is no room.
class trie_said {
 public:
  explicit trie_said(const stack_trie& trie)
      : trie_(trie), left_(trie.was_left_out()), place_(trie.nodes().size(), 0),
        frame_here_(trie.frames(), none) {
    for (const auto node : outermost_first())
      say(node);
  }

  void write(messages::StackTrie::Builder out) const {
    auto names = out.initNames(static_cast<unsigned>(names_.size()));
    for (unsigned i = 0; i < names.size(); ++i)
      names.set(i, to_text(names_[i]));
    fill(out.initFunctions(size_of(functions_)), functions_);
    fill(out.initSources(size_of(sources_)), sources_);
    fill(out.initParents(size_of(parents_)), parents_);
    fill(out.initFrames(size_of(frames_)), frames_);
    fill(out.initThreads(static_cast<unsigned>(threads_.size())), threads_);
    fill(out.initEnded(static_cast<unsigned>(ended_.size())), ended_);
    fill(out.initRunCounts(size_of(run_counts_)), run_counts_);
    fill(out.initLineCounts(static_cast<unsigned>(line_counts_.size())), line_counts_);
    fill(out.initRuns(size_of(runs_)), runs_);
    fill(out.initLines(size_of(lines_)), lines_);
    out.setDeepStacks(left_.deep);
    out.setCutStacks(left_.full);
    out.setLeftOutNames(left_.names);
  }

 private:
  std::vector<stack_trie::node_id> outermost_first() const {
    const auto& nodes = trie_.nodes();
    std::vector<std::uint32_t> depth(nodes.size(), 0);
    for (std::size_t i = 1; i < nodes.size(); ++i)
      depth[i] = depth[nodes[i].parent] + 1;
    std::vector<stack_trie::node_id> order(nodes.size() - 1);
    std::iota(order.begin(), order.end(), 1);
    std::stable_sort(order.begin(), order.end(),
                     [&depth](auto a, auto b) { return depth[a] < depth[b]; });
    return order;
  }

  void say(stack_trie::node_id node) {
    const auto& n = trie_.nodes()[node];
    const auto parent = place_[n.parent];
    if (n.parent != stack_trie::root && parent == 0)
      return; // left out, and counted, above
    const auto frame = has_room(n) ? frame_here(n.frame) : none;
    if (frame == none) {
      left_.full += n.threads;
      if (parent != 0)
        ended_[parent - 1] += n.threads;
      return;
    }
    parents_.push_back(parent);
    frames_.push_back(frame);
    threads_.push_back(n.threads);
    ended_.push_back(n.ended);
    run_counts_.push_back(static_cast<std::uint32_t>(n.ranks.runs().size()));
    append_runs(runs_, n.ranks, n.ranks.runs().size());
    std::uint8_t lines = 0;
    for (; lines < line_set::kept && n.lines.lines[lines] != 0; ++lines)
      lines_.push_back(n.lines.lines[lines]);
    line_counts_.push_back(n.lines.more ? lines | more_lines : lines);
    place_[node] = size_of(parents_);
  }

  bool has_room(const stack_trie::node& n) {
    const auto size = 29 + 8 * n.ranks.runs().size() + sizeof n.lines.lines;
    return take(size);
  }
  bool take(std::size_t size) {
    if (bytes_ + size > limits::trie_message_max)
      return false;
    bytes_ += size;
    return true;
  }

  std::uint32_t frame_here(stack_trie::frame_id id) {
    if (frame_here_[id] != none)
      return frame_here_[id];
    const auto f = trie_.frame_at(id);
    const auto function = name(f.function), source = name(f.source);
    if (function == none || source == none || !take(8))
      return none;
    functions_.push_back(function);
    sources_.push_back(source);
    return frame_here_[id] = size_of(functions_) - 1;
  }
  std::uint32_t name(std::string_view text) {
    if (const auto at = by_name_.find(text); at != by_name_.end())
      return at->second;
    if (!take(text.size() + limits::text_overhead))
      return none;
    names_.emplace_back(text);
    const auto id = static_cast<std::uint32_t>(names_.size() - 1);
    by_name_.emplace(text, id);
    return id;
  }

  const stack_trie& trie_;
  left_out left_;
  std::size_t bytes_ = 0;
  numbers place_; ///< of each node: its place in the lists from 1; 0: not said
  numbers frame_here_;
  std::vector<std::string> names_;
  std::unordered_map<std::string_view, std::uint32_t> by_name_; ///< of the trie's own texts
  numbers functions_, sources_, parents_, frames_, run_counts_, runs_, lines_;
  std::vector<std::uint64_t> threads_, ended_;
  std::vector<std::uint8_t> line_counts_;
};

/// Reads so many runs from a place on; nothing if they are no ranks in order.
std::optional<rank_set> ranks_from(run_list::Reader runs, std::size_t& at, std::size_t count) {
  rank_set out;
  if (count > (runs.size() - at) / 2)
    return std::nullopt;
  for (; count > 0; --count, at += 2) {
    const rank_set::run r{runs[static_cast<unsigned>(at)], runs[static_cast<unsigned>(at + 1)]};
    if (r.last >= limits::ranks_max || !out.append(r))
      return std::nullopt;
  }
  return out;
}

std::optional<rank_set> ranks_of(run_list::Reader runs) {
  std::size_t at = 0;
  auto out = ranks_from(runs, at, runs.size() / 2);
  return at == runs.size() ? out : std::nullopt;
}

std::optional<line_set> lines_from(run_list::Reader lines, std::size_t& at, std::uint8_t said) {
  const auto count = std::size_t{said} & ~std::size_t{more_lines};
  if (count > line_set::kept || count > lines.size() - at)
    return std::nullopt;
  line_set out;
  for (const auto end = at + count; at < end; ++at)
    out.add(lines[static_cast<unsigned>(at)]);
  out.more = (said & more_lines) != 0;
  return out;
}

/// Nothing, or one line of what is wrong.
using damage = std::optional<std::string>;

damage read_trie(messages::StackTrie::Reader in, stack_trie& into) {
  const auto names = in.getNames();
  std::vector<stack_trie::frame_id> frames;
  if (in.getFunctions().size() != in.getSources().size())
    return "its list of frames is damaged";
  for (unsigned i = 0; i < in.getFunctions().size(); ++i) {
    const auto function = in.getFunctions()[i], source = in.getSources()[i];
    if (function >= names.size() || source >= names.size())
      return "its list of frames is damaged";
    frames.push_back(into.frame_of(text_of(names[function]), text_of(names[source])));
  }
  const auto size = in.getParents().size();
  if (in.getFrames().size() != size || in.getThreads().size() != size ||
      in.getEnded().size() != size || in.getRunCounts().size() != size ||
      in.getLineCounts().size() != size)
    return "its list of nodes is damaged";
  std::vector<stack_trie::node_id> place(std::size_t{size} + 1, stack_trie::root);
  std::vector<std::uint32_t> depth(std::size_t{size} + 1, 0);
  std::size_t run = 0, line = 0;
  for (unsigned i = 0; i < size; ++i) {
    const auto parent = in.getParents()[i], frame = in.getFrames()[i];
    const auto ranks = ranks_from(in.getRuns(), run, in.getRunCounts()[i]);
    const auto lines = lines_from(in.getLines(), line, in.getLineCounts()[i]);
    if (parent > i || frame >= frames.size() || !ranks || !lines)
      return "its list of nodes is damaged";
    depth[i + 1] = depth[parent] + 1;
    if (depth[i + 1] > limits::stack_frames_max)
      return "a stack of it is deeper than stacks are";
    const auto node = into.child(place[parent], frames[frame]);
    if (node == stack_trie::root ||
        !into.add_to(node, *ranks, *lines, in.getThreads()[i], in.getEnded()[i]))
      return "it has more nodes than stacks may have";
    place[i + 1] = node;
  }
  into.leave_out({in.getDeepStacks(), in.getCutStacks(), in.getLeftOutNames()});
  return std::nullopt;
}

damage read_missing(messages::MergedStacks::Reader in, merged_stacks& out) {
  for (const auto m : in.getMissing()) {
    const auto of = ranks_of(m.getRanks());
    if (!of)
      return "its list of what is missing is damaged";
    out.add_missing(std::string(text_of(m.getWhat())), *of);
  }
  const auto more = ranks_of(in.getMissingMore());
  if (!more)
    return "its list of what is missing is damaged";
  out.missing_more.add(*more);
  return std::nullopt;
}

} // namespace

void write_merged(const merged_stacks& stacks, messages::MergedStacks::Builder out) {
  out.setWorldSize(stacks.world_size);
  const auto ranks = runs_of(stacks.ranks);
  fill(out.initRanks(size_of(ranks)), ranks);
  trie_said(stacks.native).write(out.initNative());
  trie_said(stacks.python).write(out.initPython());
  auto missing = out.initMissing(static_cast<unsigned>(stacks.missing.size()));
  unsigned i = 0;
  for (const auto& [what, of] : stacks.missing) {
    missing[i].setWhat(to_text(what));
    const auto runs = runs_of(of, limits::missing_runs_max);
    fill(missing[i++].initRanks(size_of(runs)), runs);
  }
  const auto more = runs_of(stacks.missing_more, limits::missing_runs_max);
  fill(out.initMissingMore(size_of(more)), more);
}

result<merged_stacks> read_merged(messages::MergedStacks::Reader in) {
  merged_stacks out;
  const auto ranks = ranks_of(in.getRanks());
  if (!ranks || in.getWorldSize() > limits::ranks_max)
    return failure(errc::invalid, "its list of ranks is damaged");
  out.world_size = in.getWorldSize();
  out.ranks = *ranks;
  if (const auto wrong = read_trie(in.getNative(), out.native))
    return failure(errc::invalid, "native stacks: " + *wrong);
  if (const auto wrong = read_trie(in.getPython(), out.python))
    return failure(errc::invalid, "Python stacks: " + *wrong);
  if (const auto wrong = read_missing(in, out))
    return failure(errc::invalid, *wrong);
  return out;
}

} // namespace troupe::diag
