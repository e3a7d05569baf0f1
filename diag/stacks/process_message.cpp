#include "diag/stacks/process_message.hpp"

#include "diag/stacks/text_of.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>

namespace troupe::diag {

namespace {

using process_reader = messages::ProcessStacks::Reader;
using numbers = std::vector<std::uint32_t>;

std::string_view beginning(std::string_view text, std::size_t max) {
  return text.substr(0, std::min(text.size(), max));
}

/// The frames of a process, each once, as they fit.
class frames_said {
 public:
  /// The frame's number, or nothing if there is no room for it.
  std::optional<std::uint32_t> number(const stack_frame& f) {
    const auto function = name(f.function), source = name(f.source);
    if (!function || !source)
      return std::nullopt;
    const std::tuple key{*function, *source, f.line};
    const auto [at, is_new] = known_.emplace(key, frames_.size());
    if (is_new)
      frames_.push_back(key);
    return at->second;
  }

  void write(messages::ProcessStacks::Builder out) const {
    auto names = out.initNames(static_cast<unsigned>(names_.size()));
    for (unsigned i = 0; i < names.size(); ++i)
      names.set(i, to_text(names_[i]));
    const auto size = static_cast<unsigned>(frames_.size());
    auto functions = out.initFunctions(size), sources = out.initSources(size),
         lines = out.initLines(size);
    for (unsigned i = 0; i < size; ++i) {
      functions.set(i, std::get<0>(frames_[i]));
      sources.set(i, std::get<1>(frames_[i]));
      lines.set(i, std::get<2>(frames_[i]));
    }
  }

 private:
  std::optional<std::uint32_t> name(std::string_view text) {
    text = beginning(text, limits::stack_name_max);
    if (const auto at = by_name_.find(std::string(text)); at != by_name_.end())
      return at->second;
    const auto size = text.size() + limits::text_overhead;
    if (bytes_ + size > limits::process_names_bytes_max)
      return std::nullopt;
    bytes_ += size;
    names_.emplace_back(text);
    const auto id = static_cast<std::uint32_t>(names_.size() - 1);
    by_name_.emplace(text, id);
    return id;
  }

  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t> by_name_;
  std::size_t bytes_ = 0;
  std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> frames_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> known_;
};

constexpr std::size_t waits_in_max = 127;

/// Stacks as numbers, until there is no room.
class stacks_said {
 public:
  /// Empty, and counted, if there is no room for it.
  numbers said(const std::vector<stack_frame>& stack) {
    numbers out;
    if (frames_ + stack.size() <= limits::process_frames_max)
      for (const auto& f : stack) {
        const auto number = frames.number(f);
        if (!number)
          break;
        out.push_back(*number);
      }
    if (out.size() < stack.size()) {
      ++left_out;
      return {};
    }
    frames_ += stack.size();
    return out;
  }

  frames_said frames;
  std::size_t left_out = 0;

 private:
  std::size_t frames_ = 0;
};

void set_numbers(capnp::List<std::uint32_t>::Builder out, const numbers& from) {
  for (unsigned i = 0; i < out.size(); ++i)
    out.set(i, from[i]);
}

void write_thread(const thread_stacks& t, stacks_said& stacks,
                  messages::ThreadStacks::Builder out) {
  out.setId(t.id);
  out.setName(to_text(std::string(beginning(t.name, 63))));
  out.setState(static_cast<std::uint8_t>(t.state));
  out.setHoldsGil(t.holds_gil);
  out.setMissing(to_text(missing_line(t.missing)));
  out.setWaitsIn(to_text(std::string(beginning(t.waits_in, waits_in_max))));
  const auto native = stacks.said(t.native), python = stacks.said(t.python);
  set_numbers(out.initNative(static_cast<unsigned>(native.size())), native);
  set_numbers(out.initPython(static_cast<unsigned>(python.size())), python);
}

void write_missing(std::vector<std::string> missing, messages::ProcessStacks::Builder out) {
  if (missing.size() > limits::missing_lines_max) {
    const auto more = missing.size() - limits::missing_lines_max + 1;
    missing.resize(limits::missing_lines_max - 1);
    missing.push_back(fmt::format("{} further lines of what is missing are left out", more));
  }
  auto lines = out.initMissing(static_cast<unsigned>(missing.size()));
  for (unsigned i = 0; i < lines.size(); ++i)
    lines.set(i, to_text(missing_line(missing[i])));
}

void write_facts(const process_stacks& process, messages::ProcessStacks::Builder out) {
  const auto count = std::min(process.facts.size(), limits::missing_lines_max);
  auto lines = out.initFacts(static_cast<unsigned>(count));
  for (unsigned i = 0; i < count; ++i)
    lines.set(i, to_text(missing_line(process.facts[i])));
  out.setMotion(static_cast<std::uint8_t>(process.moves));
}

/// Of a later version's kinds of motion nothing is known.
motion motion_of(std::uint8_t number) {
  return number <= static_cast<std::uint8_t>(motion::awaits) ? static_cast<motion>(number)
                                                             : motion::unknown;
}

bool all_below(capnp::List<std::uint32_t>::Reader places, std::size_t bound) {
  for (const auto place : places)
    if (place >= bound)
      return false;
  return true;
}

/// What is wrong with it; nothing if every place in it is there and all is within its bounds.
std::optional<std::string> objection(process_reader in) {
  if (in.getRank() >= limits::ranks_max || in.getWorldSize() > limits::ranks_max ||
      (in.getWorldSize() > 0 && in.getRank() >= in.getWorldSize()))
    return fmt::format("rank {} of {} cannot be", in.getRank(), in.getWorldSize());
  const auto frames = in.getFunctions().size();
  const auto names = in.getNames().size();
  if (in.getSources().size() != frames || in.getLines().size() != frames ||
      !all_below(in.getFunctions(), names) || !all_below(in.getSources(), names))
    return "its list of frames is damaged";
  if (in.getThreads().size() > limits::process_threads_max ||
      in.getMissing().size() > limits::missing_lines_max ||
      in.getFacts().size() > limits::missing_lines_max)
    return fmt::format("{} threads are more than a process may have", in.getThreads().size());
  std::size_t all = 0;
  for (const auto t : in.getThreads()) {
    all += std::size_t{t.getNative().size()} + t.getPython().size();
    if (all > limits::process_frames_max)
      return "it has more frames than a process may have";
    if (!all_below(t.getNative(), frames) || !all_below(t.getPython(), frames))
      return "a stack of it is damaged";
  }
  return std::nullopt;
}

result<void> checked(process_reader in) {
  if (const auto wrong = objection(in))
    return failure(errc::invalid, *wrong);
  return {};
}

std::vector<stack_frame> stack_of(process_reader in, capnp::List<std::uint32_t>::Reader stack) {
  std::vector<stack_frame> out;
  out.reserve(stack.size());
  for (const auto f : stack)
    out.push_back({std::string(text_of(in.getNames()[in.getFunctions()[f]])),
                   std::string(text_of(in.getNames()[in.getSources()[f]])), in.getLines()[f]});
  return out;
}

/// Merges stacks of one message into one trie; asks the trie for each frame once.
class frames_heard {
 public:
  frames_heard(process_reader in, stack_trie& trie)
      : names_(in.getNames()), functions_(in.getFunctions()), sources_(in.getSources()),
        lines_(in.getLines()), role_(text_of(in.getRole())), rank_(in.getRank()), trie_(trie),
        here_(functions_.size(), number_table::none) {}

  void add(char state, capnp::List<std::uint32_t>::Reader innermost_first) {
    steps_.assign(1, {state_of(state), 0});
    trie_.add(rank_, steps_);
    if (innermost_first.size() == 0)
      return;
    steps_.clear();
    if (!role_.empty())
      steps_.push_back({role_frame(trie_, role_), 0});
    for (auto i = innermost_first.size(); i-- > 0;)
      steps_.push_back(step_of(innermost_first[i]));
    trie_.add(rank_, steps_);
  }

 private:
  stack_trie::step step_of(std::uint32_t frame) {
    auto& id = here_[frame];
    if (id == number_table::none)
      id = trie_.frame_of(text_of(names_[functions_[frame]]), text_of(names_[sources_[frame]]));
    return {id, lines_[frame]};
  }
  stack_trie::frame_id state_of(char state) {
    const auto [at, is_new] = states_.emplace(state, 0);
    if (is_new)
      at->second = state_frame(trie_, role_, state);
    return at->second;
  }

  capnp::List<capnp::Text>::Reader names_;
  capnp::List<std::uint32_t>::Reader functions_, sources_, lines_;
  std::string_view role_;
  std::uint32_t rank_;
  stack_trie& trie_;
  std::vector<stack_trie::frame_id> here_;
  std::map<char, stack_trie::frame_id> states_;
  std::vector<stack_trie::step> steps_;
};

} // namespace

void write_process(const process_stacks& process, messages::ProcessStacks::Builder out) {
  out.setRank(process.rank);
  out.setWorldSize(process.world_size);
  out.setPid(process.pid);
  out.setRole(to_text(std::string(beginning(process.role, limits::missing_line_max))));
  out.setPythonVersion(to_text(std::string(beginning(process.python_version, 63))));
  stacks_said stacks;
  const auto count = std::min(process.threads.size(), limits::process_threads_max);
  auto threads = out.initThreads(static_cast<unsigned>(count));
  for (unsigned i = 0; i < count; ++i)
    write_thread(process.threads[i], stacks, threads[i]);
  stacks.frames.write(out);
  auto missing = process.missing;
  if (count < process.threads.size())
    missing.push_back(fmt::format("{} further threads are left out: only {} fit into a dump",
                                  process.threads.size() - count, count));
  if (stacks.left_out > 0)
    missing.push_back(
        fmt::format("{} stacks are left out: they do not fit into a dump", stacks.left_out));
  write_missing(std::move(missing), out);
  write_facts(process, out);
}

result<process_stacks> read_process(process_reader in) {
  if (auto ok = checked(in); !ok)
    return tl::make_unexpected(ok.error());
  process_stacks p;
  p.rank = in.getRank();
  p.world_size = in.getWorldSize();
  p.pid = in.getPid();
  p.role = text_of(in.getRole());
  p.python_version = text_of(in.getPythonVersion());
  for (const auto t : in.getThreads())
    p.threads.push_back(
        {t.getId(), std::string(text_of(t.getName())), static_cast<char>(t.getState()),
         stack_of(in, t.getNative()), stack_of(in, t.getPython()), t.getHoldsGil(),
         std::string(text_of(t.getMissing())), std::string(text_of(t.getWaitsIn()))});
  for (const auto line : in.getMissing())
    p.missing.emplace_back(text_of(line));
  for (const auto line : in.getFacts())
    p.facts.emplace_back(text_of(line));
  p.moves = motion_of(in.getMotion());
  return p;
}

result<void> add_process(merged_stacks& into, process_reader in) {
  if (auto ok = checked(in); !ok)
    return ok;
  rank_set rank;
  rank.add(in.getRank());
  into.ranks.add(rank);
  into.world_size = std::max(into.world_size, in.getWorldSize());
  for (const auto line : in.getMissing())
    into.add_missing(std::string(text_of(line)), rank);
  frames_heard native(in, into.native), python(in, into.python);
  for (const auto t : in.getThreads()) {
    const auto state = static_cast<char>(t.getState());
    if (t.getNative().size() > 0 || t.getPython().size() == 0)
      native.add(state, t.getNative());
    if (t.getPython().size() > 0)
      python.add(state, t.getPython());
    if (t.hasMissing() && t.getMissing().size() > 0)
      into.add_missing(std::string(text_of(t.getMissing())), rank);
  }
  return {};
}

} // namespace troupe::diag
