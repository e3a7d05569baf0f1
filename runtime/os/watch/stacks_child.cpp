#include "runtime/os/watch/stacks_child.hpp"

#include "diag/stacks/dump_file.hpp"
#include "runtime/os/process/bounded_child.hpp"
#include "runtime/os/watch/limits.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::os {

namespace {

std::vector<std::string> command_of(const std::vector<dumped_process>& processes,
                                    bool with_children, duration within) {
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(within).count();
  std::vector<std::string> words{"troupe-dump", "--messages", "--within",
                                 std::to_string(std::max<std::int64_t>(limit, 1))};
  if (with_children)
    words.push_back("--children");
  for (const auto& p : processes)
    words.push_back(fmt::format("{}:{}", p.pid, p.rank));
  return words;
}

} // namespace

diag::dump_result read_in_child(const std::string& program,
                                const std::vector<dumped_process>& processes, bool with_children,
                                duration within) {
  diag::dump_result result;
  child_task task;
  task.program = program;
  task.words = command_of(processes, with_children, within);
  task.output_max = limits::dump_bytes_max;
  task.within = within;
  const auto ended = run_child(task);
  if (!ended) {
    result.missing.push_back(ended.error().what);
    return result;
  }
  result.stacks = diag::read_dump(ended->output);
  for (const auto& p : processes)
    if (std::none_of(result.stacks.begin(), result.stacks.end(),
                     [&p](const auto& s) { return s.pid == static_cast<std::uint64_t>(p.pid); }))
      result.missing.push_back(
          fmt::format("rank {}: its process {} has ended, or its stacks were not read within {}",
                      p.rank, p.pid, in_words(within)));
  return result;
}

} // namespace troupe::os
