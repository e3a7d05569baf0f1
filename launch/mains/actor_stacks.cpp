#include "launch/mains/programs.hpp"
#include "launch/shell/terminal.hpp"
#include "launch/stacks/stack_outputs.hpp"
#include "launch/wiring/machine.hpp"
#include "launch/wiring/program.hpp"
#include "runtime/os/log/printable.hpp"

#include <algorithm>

using namespace troupe;
using namespace troupe::launch;

namespace {

constexpr auto program = "actor-stacks";
/// Beyond that the disk is what takes the time.
constexpr unsigned threads_max = 8;

} // namespace

/// Reads dumps and writes pictures; talks to no job.
int troupe::launch::actor_stacks(int argc, char** argv) {
  prepare_process(program);
  const auto machine = this_machine();
  const auto parsed = parse_stacks(arguments_of(argc, argv), machine);
  if (const auto code = unless_parsed(program, parsed))
    return *code;
  const auto& options = std::get<stacks_options>(parsed);
  const auto all = gather_stacks(options.path, std::min(machine.cpus, threads_max));
  if (!all)
    return report_error(program, os::printable(all.error().what), exit_failure);
  for (const auto& remark : all->remarks)
    report_error(program, os::printable(remark), exit_success);
  if (const auto written = write_stacks(all->stacks, options.output); !written)
    return report_error(program, os::printable(written.error().what), exit_failure);
  (void)print(report_of(*all, options.output));
  return exit_success;
}
