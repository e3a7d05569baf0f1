#include "launch/job_policy.hpp"
#include "launch/machine.hpp"
#include "launch/master_run.hpp"
#include "launch/program.hpp"
#include "launch/run_directory.hpp"
#include "runtime/os/net/descriptor_limit.hpp"
#include "runtime/sup/engine.hpp"

#include <fmt/format.h>

using namespace troupe;
using namespace troupe::launch;

namespace {

constexpr auto program = "actor-master";
constexpr unsigned engine_threads = 2;

result<actors::master_options> master_options_of(const master_program_options& o) {
  actors::master_options m;
  m.membership.job = o.rdzv_id;
  m.membership.nodes_min = o.nodes_min;
  m.membership.nodes_max = o.nodes_max;
  m.rendezvous.nodes_min = o.nodes_min;
  m.rendezvous.nodes_max = o.nodes_max;
  m.rendezvous.join_timeout = o.rendezvous.join_timeout.value_or(limits::join_timeout);
  m.rendezvous.last_call = o.rendezvous.last_call_timeout;
  m.recovery.max_restarts = o.max_restarts;
  m.recovery.settle = limits::verdict_settles;
  m.gateway.listen_on = o.listen;
  if (auto applied = apply_policy(o.policy, std::nullopt, m); !applied)
    return tl::make_unexpected(applied.error());
  return m;
}

int run(const master_program_options& o, std::unique_ptr<os::logs> log) {
  // Two per node: a node that comes back may dial before its old link is noticed to be gone.
  if (auto raised = os::raise_descriptor_limit(2 * o.nodes_max + 64); !raised)
    return complain(program, raised.error().what, exit_failure);
  os::io_thread io;
  sup::engine engine(engine_threads);
  auto transport = open_transport(io, o.common, log->sink(), o.rendezvous.lease);
  if (!transport)
    return complain(program, transport.error().what, exit_failure);
  const auto directory = run_directory::make({}, o.rdzv_id);
  if (!directory)
    return complain(program, directory.error().what, exit_failure);
  auto journal = open_journal(o.journal, *directory);
  if (!journal)
    return complain(program, journal.error().what, exit_failure);
  const auto options = master_options_of(o);
  if (!options)
    return complain(program, options.error().what, exit_failure);
  auto master =
      master_run::start(engine.system(), {*transport, std::move(*journal)}, *options, log->sink());
  if (!master)
    return complain(program,
                    master.error().code == errc::refused
                        ? master.error().what + " (a job has one master: if it is there already, "
                                                "nodes find it without this one)"
                        : master.error().what,
                    exit_failure);
  log->sink()("actor-master",
              {log::level::story,
               "listening",
               fmt::format("job '{}': waiting for {} at {}", o.rdzv_id,
                           o.nodes_min == o.nodes_max
                               ? fmt::format("{} node(s)", o.nodes_min)
                               : fmt::format("{} to {} nodes", o.nodes_min, o.nodes_max),
                           ports::to_string((*master)->where())),
               {{"endpoint", ports::to_string((*master)->where())}}});
  const signal_watch signals(io, parse_signals(signals_by_default)->ending, [&master](int number) {
    (*master)->abandon(
        fmt::format("the master received {}", ports::to_string(ports::exit_status{true, number})));
  });
  const auto verdict = (*master)->verdict().get();
  (*master)->everyone_left().wait_for(limits::farewell_within);
  (*master)->shutdown();
  log.reset();
  directory->tidy_up();
  if (verdict.success)
    return exit_success;
  return verdict.exit_code != 0 ? verdict.exit_code : exit_failure;
}

} // namespace

int main(int argc, char** argv) {
  prepare_process();
  const auto parsed = parse_master(arguments_of(argc, argv), this_machine());
  if (const auto code = unless_parsed(program, parsed))
    return *code;
  const auto& options = std::get<master_program_options>(parsed);
  auto log = open_log(options.common);
  if (!log)
    return complain(program, log.error().what, exit_failure);
  leave(run(options, std::move(*log)));
}
