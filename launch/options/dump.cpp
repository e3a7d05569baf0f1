#include "launch/options/arguments.hpp"
#include "launch/options/values.hpp"
#include "runtime/os/watch/limits.hpp"

#include <fmt/format.h>

/// troupe-dump's command line: options may stand before, between and behind the processes. A node
/// supervisor types it as well, so it takes nothing from the environment.
namespace troupe::launch {

namespace {

constexpr std::int64_t samples_max = 100, milliseconds_max = 600'000, pid_max = 1 << 30;
constexpr std::int64_t ranks_max = limits::nodes_max * limits::local_world_max;

struct dump_arguments {
  bool python_only = false;
  bool native_only = false;
  std::int64_t samples = 0, apart = 200, within = 10'000;
  std::optional<std::int64_t> world;
};

option_group what_group(dump_program_options& o, dump_arguments& w) {
  return {"What is shown",
          {typed_only({scope::process,
                       {"--python-only"},
                       "",
                       "Python's frames only: no thread is stopped",
                       into(w.python_only)}),
           typed_only({scope::process,
                       {"--native-only"},
                       "",
                       "Leave out Python's frames",
                       into(w.native_only)}),
           typed_only({scope::process,
                       {"--children"},
                       "",
                       "With the children of each, as the workers of a data loader are",
                       into(o.with_children)}),
           typed_only({scope::process,
                       {"--samples"},
                       "N",
                       "Look N times (2 to 100) whether each moves (0: do not)",
                       into(w.samples)}),
           typed_only({scope::process, {"--apart"}, "MS", "So far apart (200)", into(w.apart)}),
           typed_only({scope::process,
                       {"--within"},
                       "MS",
                       "End after this, whatever is held up (10000)",
                       into(w.within)})}};
}

option_group messages_group(dump_program_options& o, dump_arguments& w) {
  return {"For programs",
          {typed_only({scope::process,
                       {"--messages"},
                       "",
                       "ProcessStacks messages, as in the dump file of a rank, each as soon as it "
                       "is there",
                       into(o.as_messages)}),
           typed_only({scope::process,
                       {"--world"},
                       "N",
                       "Of how many ranks each RANK is one",
                       into(w.world)})}};
}

/// "4711" or "4711:3".
std::optional<dump_program_options::process> process_of(const std::string& word) {
  const auto colon = std::min(word.find(':'), word.size());
  const auto pid = python_int(word.substr(0, colon));
  const auto rank = colon == word.size() ? 0 : python_int(word.substr(colon + 1));
  if (!pid || *pid < 1 || *pid > pid_max || !rank || *rank < 0 || *rank >= ranks_max)
    return std::nullopt;
  return dump_program_options::process{static_cast<std::int32_t>(*pid),
                                       static_cast<std::uint32_t>(*rank)};
}

std::optional<std::string> outside(const char* name, std::int64_t value, std::int64_t most) {
  if (value >= 1 && value <= most)
    return std::nullopt;
  return fmt::format("{}: {}; 1 to {} are possible", name, value, most);
}

/// What is wrong with the options by themselves and beside each other.
std::optional<std::string> derive(dump_program_options& o, const dump_arguments& w) {
  if (w.samples < 0 || w.samples > samples_max)
    return fmt::format("--samples: {}; 0, or 2 to {} are possible", w.samples, samples_max);
  if (w.samples == 1)
    return fmt::format("one sample tells no motion: --samples takes 0, or 2 to {}", samples_max);
  for (const auto& wrong : {outside("--apart", w.apart, milliseconds_max),
                            outside("--within", w.within, milliseconds_max),
                            outside("--world", w.world.value_or(1), ranks_max)})
    if (wrong)
      return wrong;
  if (w.python_only && w.native_only)
    return "--python-only and --native-only leave nothing";
  if (o.processes.empty() || o.processes.size() > limits::dumped_processes_max)
    return fmt::format("1 to {} processes must be named", limits::dumped_processes_max);
  for (const auto& p : o.processes)
    if (w.world && p.rank >= *w.world)
      return fmt::format("rank {} is not one of {}", p.rank, *w.world);
  o.python = !w.native_only;
  o.native = !w.python_only;
  o.samples = static_cast<int>(w.samples);
  o.apart = std::chrono::milliseconds(w.apart);
  o.within = std::chrono::milliseconds(w.within);
  o.world_size = static_cast<std::uint32_t>(w.world.value_or(0));
  return std::nullopt;
}

} // namespace

parsed<dump_program_options> parse_dump(const std::vector<std::string>& arguments,
                                        const machine_facts& machine) {
  dump_program_options o;
  dump_arguments w;
  argument_grammar d(
      "troupe-dump", "[options] PID[:RANK]...",
      "Shows what processes are doing: the stacks of all their threads, Python's and native. They "
      "need not help, and go on meanwhile. RANK (0) is the number under which a process is shown. "
      "Ends with 0: shown; 1: one of the processes was not there, or not all could be read in "
      "time; 2: the command line is wrong.");
  d.add(what_group(o, w));
  d.add(messages_group(o, w));
  declare_answers(d, machine.columns);
  auto words = arguments;
  while (true) {
    auto said = d.parse(words, {});
    if (auto* text = std::get_if<just_print>(&said))
      return *text;
    if (auto* wrong = std::get_if<refusal>(&said))
      return *wrong;
    words = std::move(std::get<argument_grammar::positional>(said).rest);
    if (words.empty())
      break;
    auto word = words.begin();
    for (; word != words.end() && word->compare(0, 1, "-") != 0; ++word) {
      const auto process = process_of(*word);
      if (!process)
        return refusal{fmt::format("'{}' is neither an option nor the number of a process "
                                   "(see --help)",
                                   *word)};
      o.processes.push_back(*process);
    }
    if (word == words.begin())
      return refusal{fmt::format("'{}' is not the number of a process (see --help)", *word)};
    words.erase(words.begin(), word);
  }
  if (auto wrong = derive(o, w))
    return refusal{*wrong};
  return o;
}

} // namespace troupe::launch
