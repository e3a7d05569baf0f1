#include "launch/shell/stacks_command.hpp"

#include "diag/stacks/merged_message.hpp"
#include "launch/shell/stacks_lines.hpp"
#include "launch/shell/terminal.hpp"
#include "launch/wiring/program.hpp"
#include "runtime/os/log/printable.hpp"

#include <fmt/format.h>

namespace troupe::launch {

namespace {

result<stacks_seen> seen_in(messages::StacksReport::Reader report) {
  auto stacks = diag::read_merged(report.getStacks());
  if (!stacks)
    return tl::make_unexpected(stacks.error());
  return stacks_seen{report.getDirectory().cStr(), report.getWhy().cStr(), std::move(*stacks)};
}

} // namespace

int show_stacks(const shell_options& o, const std::shared_ptr<ports::transport>& transport,
                const ports::endpoint& master, wishes& wants) {
  inquiry asked(transport, master, wants.wake, [&wants] { return wants.stop.load(); });
  const auto answer = asked.ask_stacks();
  if (wants.stop)
    return exit_success;
  const auto where = ports::to_string(master);
  if (!answer)
    return report_error(
        shell_program,
        fmt::format("the master at {} was not asked: {}", where, answer.error().what),
        exit_failure);
  const auto seen = seen_in(*answer->read());
  if (!seen)
    return report_error(shell_program, "the master's answer: " + seen.error().what, exit_failure);
  if (!print(o.json ? stacks_json(*seen) + "\n" : stacks_text(*seen, o.text)))
    return exit_failure;
  return seen->directory.empty()
             ? report_error(shell_program, "no stacks: " + os::printable(seen->why), exit_failure)
             : exit_success;
}

} // namespace troupe::launch
