#include "launch/stacks/stack_outputs.hpp"

#include "diag/stacks/flame_graph.hpp"
#include "diag/stacks/ordered_stacks.hpp"
#include "diag/stacks/stack_files.hpp"
#include "runtime/os/log/printable.hpp"
#include "runtime/os/whole_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <iterator>
#include <system_error>

namespace troupe::launch {

namespace fs = std::filesystem;

namespace {

/// Lines of what is missing that are told; all are in the JSON.
constexpr std::size_t told_missing = 20;

struct output {
  const char* name;
  const char* title;
  const diag::stack_trie& trie;
};

result<void> write_one(const output& o, const diag::merged_stacks& stacks, const fs::path& into) {
  const auto world = diag::rank_set::below(stacks.world_size);
  if (auto written = os::write_whole(into / o.name, diag::folded(o.trie, world)); !written)
    return written;
  return os::write_whole(into / fmt::format("{}.svg", o.name),
                         diag::svg_of(o.trie, stacks, {o.title, 1600}));
}

} // namespace

result<void> write_stacks(const diag::merged_stacks& stacks, const std::string& directory) {
  std::error_code wrong;
  fs::create_directories(directory, wrong);
  if (wrong)
    return failure(errc::refused, fmt::format("{}: {}", directory, wrong.message()));
  const fs::path into = directory;
  for (const output& o : {output{"py_stack", "Python stacks of all ranks", stacks.python},
                          output{"cpp_stack", "Native stacks of all ranks", stacks.native}})
    if (auto written = write_one(o, stacks, into); !written)
      return written;
  return os::write_whole(into / "stacks.json", diag::to_json(stacks));
}

std::string report_of(const gathered_stacks& all, const std::string& directory) {
  const auto& stacks = all.stacks;
  std::string out;
  auto to = std::back_inserter(out);
  fmt::format_to(to, "{} dumps: {} of {} ranks ({})\n", all.files, stacks.ranks.size(),
                 stacks.world_size, stacks.ranks.text(limits::label_runs_max));
  if (const auto absent = stacks.absent(); !absent.empty())
    fmt::format_to(to, "nothing of {} ranks: {}\n", absent.size(),
                   absent.text(limits::label_runs_max));
  std::size_t told = 0;
  for (const auto& [what, of] : stacks.missing) {
    if (told++ == told_missing) {
      fmt::format_to(to, "{} further lines of what is missing are in stacks.json\n",
                     stacks.missing.size() - told_missing);
      break;
    }
    fmt::format_to(to, "missing of ranks {}: {}\n", of.text(limits::label_runs_max),
                   os::printable(what));
  }
  auto left = stacks.native.was_left_out();
  left.add(stacks.python.was_left_out());
  if (left.deep + left.full + left.names > 0)
    fmt::format_to(to,
                   "beyond the bounds: {} stacks lack their middle, {} end early, {} names are "
                   "shown as unknown\n",
                   left.deep, left.full, left.names);
  const fs::path into = directory;
  const auto line = [&](const char* name, const diag::stack_trie& trie) {
    const auto what = diag::ordered(trie);
    fmt::format_to(to, "{}: {} different stacks of {} threads\n",
                   os::printable((into / name).string()), what.stacks - what.states, what.threads);
  };
  line("py_stack.svg", stacks.python);
  line("cpp_stack.svg", stacks.native);
  fmt::format_to(to, "{}: py_stack, cpp_stack (folded), stacks.json\n", os::printable(directory));
  return out;
}

} // namespace troupe::launch
