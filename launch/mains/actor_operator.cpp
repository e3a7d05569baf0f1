#include "launch/mains/programs.hpp"
#include "launch/wiring/machine.hpp"
#include "launch/wiring/operator_run.hpp"
#include "launch/wiring/program.hpp"

using namespace troupe;
using namespace troupe::launch;

namespace {

constexpr auto program = "actor-operator";

int run(const operator_program_options& o, const machine_facts& machine,
        std::unique_ptr<os::logs> log) {
  const auto how =
      o.awaited_job ? run_job_wait(o, machine, log->sink()) : run_operator(o, machine, log->sink());
  log.reset();
  return how ? exit_success : report_error(program, how.error().what, exit_failure);
}

} // namespace

int troupe::launch::actor_operator(int argc, char** argv) {
  prepare_process(program);
  const auto machine = this_machine();
  auto parsed = parse_operator(arguments_of(argc, argv), machine);
  if (const auto code = unless_parsed(program, parsed))
    return *code;
  const auto& options = std::get<operator_program_options>(parsed);
  auto log = open_log(options.common, {"operator", {}});
  if (!log)
    return report_error(program, log.error().what, exit_failure);
  leave(run(options, machine, std::move(*log)));
}
