#include "launch/mains/programs.hpp"
#include "launch/shell/local_masters.hpp"
#include "launch/shell/tree_command.hpp"
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
  const auto parsed = parse_shell(arguments_of(argc, argv), this_machine());
  if (const auto code = unless_parsed(program, parsed))
    return *code;
  const auto& options = std::get<shell_options>(parsed);
  os::io_thread io;
  // Of how many nodes the job is, and so how often its master beats, is not known yet.
  auto timing = link::for_peers(1, link::for_peers(limits::nodes_max).lease);
  auto transport = open_transport(
      io, options.common, [](const std::string&, const log::event&) {}, timing);
  if (!transport)
    return report_error(program, transport.error().what, exit_failure);
  auto master = options.master;
  if (!master) {
    auto found = find_master(*transport, possible_masters());
    if (!found)
      return report_error(program, found.error().what, exit_usage);
    master = *found;
  }
  const auto wants = std::make_shared<wishes>();
  const signal_watch signals(io, {SIGINT, SIGTERM, SIGHUP, SIGWINCH}, [wants](int number) {
    (number == SIGWINCH ? wants->redraw : wants->stop) = true;
    wants->wake->call();
  });
  return show_tree(options, *transport, *master, *wants);
}
