#include "launch/mains/programs.hpp"
#include "launch/shell/jobs.hpp"
#include "launch/shell/local_masters.hpp"
#include "launch/shell/masters.hpp"
#include "launch/shell/scale_command.hpp"
#include "launch/shell/set_command.hpp"
#include "launch/shell/stacks_command.hpp"
#include "launch/shell/tree_command.hpp"
#include "launch/wiring/default_token.hpp"
#include "launch/wiring/machine.hpp"
#include "launch/wiring/program.hpp"

#include <csignal>

using namespace troupe;
using namespace troupe::launch;

namespace {

constexpr auto program = "actor-shell";

} // namespace

int troupe::launch::actor_shell(int argc, char** argv) {
  prepare_process(program);
  const auto machine = this_machine();
  auto parsed = parse_shell(arguments_of(argc, argv), machine);
  if (const auto code = unless_parsed(program, parsed))
    return *code;
  auto& options = std::get<shell_options>(parsed);
  if (options.batch_size)
    return set_batch_size(options);
  if (options.master)
    take_default_token(options.common, *options.master, machine);
  os::io_thread io;
  // Of how many nodes the job is, and so how often its master beats, is not known yet.
  auto timing = link::for_peers(1, link::for_peers(limits::nodes_max).lease);
  const auto opened = [&io, &timing](const common_options& by) {
    return open_transport(
        io, by, [](const std::string&, const log::event&) {}, timing);
  };
  auto first = opened(options.common);
  if (!first)
    return report_error(program, first.error().what, exit_failure);
  std::vector<std::shared_ptr<ports::transport>> transports{*first};
  // A master on this machine may be one of a job on several, which proves itself by the user's
  // token.
  auto with_token = options.common;
  take_default_token(with_token, {"*", 0}, machine);
  if (!options.master && !options.common.reaches_other_machines() &&
      with_token.reaches_other_machines()) {
    if (auto second = opened(with_token))
      transports.push_back(*second);
    else
      report_error(program, second.error().what + "; jobs that need it are not seen", exit_failure);
  }
  if (options.lists_jobs)
    return show_jobs(transports, possible_masters(), options.json);
  master_place master{*first, options.master.value_or(ports::endpoint{})};
  if (!options.master) {
    auto found = find_master(transports, possible_masters());
    if (!found)
      return report_error(program, found.error().what, exit_usage);
    master = *found;
  }
  const auto wants = std::make_shared<wishes>();
  const signal_watch signals(io, {SIGINT, SIGTERM, SIGHUP, SIGWINCH}, [wants](int number) {
    (number == SIGWINCH ? wants->redraw : wants->stop) = true;
    wants->wake->call();
  });
  if (options.scale)
    return scale_job(options, master.by, master.where, *wants);
  return options.stacks ? show_stacks(options, master.by, master.where, *wants)
                        : show_tree(options, master.by, master.where, *wants);
}
