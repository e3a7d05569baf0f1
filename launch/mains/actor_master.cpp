#include "launch/mains/programs.hpp"
#include "launch/wiring/default_token.hpp"
#include "launch/wiring/hang_findings.hpp"
#include "launch/wiring/job_cluster.hpp"
#include "launch/wiring/machine.hpp"
#include "launch/wiring/master_journal.hpp"
#include "launch/wiring/master_run.hpp"
#include "launch/wiring/master_wiring.hpp"
#include "launch/wiring/master_witness.hpp"
#include "launch/wiring/metrics_service.hpp"
#include "launch/wiring/program.hpp"
#include "launch/wiring/run_directory.hpp"
#include "launch/wiring/topology_file.hpp"
#include "runtime/os/net/descriptor_limit.hpp"
#include "runtime/sup/engine.hpp"

#include <fmt/format.h>

#include <atomic>
#include <csignal>

using namespace troupe;
using namespace troupe::launch;

namespace {

constexpr auto program = "actor-master";

int run(const master_program_options& o, const machine_facts& machine,
        std::unique_ptr<os::logs> log, metrics_service& metrics) {
  // Two per node: a node that comes back may dial before its old link is noticed to be gone.
  if (auto raised = os::raise_descriptor_limit(2 * o.nodes_max + 64); !raised)
    return report_error(program, raised.error().what, exit_failure);
  os::io_thread io;
  const auto witness = master_witness::open(o, log->sink());
  sup::engine engine(master_run::threads);
  auto transport = open_transport(io, o.common, log->sink(), link_timing_of(o));
  if (!transport)
    return report_error(program, transport.error().what, exit_failure);
  const auto directory = run_directory::make({}, o.rdzv_id, host_name());
  if (!directory)
    return report_error(program, directory.error().what, exit_failure);
  run_directory::remove_abandoned();
  auto journal = open_master_journal(o.journal, directory->journal(), owner_of(o),
                                     {o.cluster.account, machine}, log->sink());
  if (!journal)
    return report_error(program, journal.error().what, exit_failure);
  auto options = master_options_of(settings_of(o));
  if (!options)
    return report_error(program, options.error().what, exit_failure);
  options->journal = journal->options;
  take_hang_options(o.hangs, directory->stacks(), log->sink(), options->diagnosis);
  const auto cluster =
      cluster_of(o.cluster, machine, o.rdzv_id, {o.nodes_min, o.nodes_max}, log->sink());
  if (!cluster)
    return report_error(program, cluster.error().what, exit_failure);
  actors::master_world world{*transport, journal->store,
                             topology_file::of(o.policy.topology, log->sink()), *cluster};
  // As many as its ElasticJob says, which may change, whatever a launcher was told in its pod.
  if (!o.cluster.elastic_job.empty()) {
    options->membership.nodes_min = options->membership.nodes_max = 0;
    options->membership.any_name = true;
  }
  if (witness)
    witness->take_part(*options, world);
  auto master = master_run::start(engine.system(), world, *options,
                                  until_lost(*journal, metrics.telling_cost(log->sink())));
  if (!master)
    return report_error(program,
                        master.error().code == errc::refused
                            ? master.error().what +
                                  " (a job has one master: if it is there already, "
                                  "nodes find it without this one)"
                            : master.error().what,
                        exit_failure);
  log->sink()("actor-master",
              {log::level::notice,
               "listening",
               fmt::format("job '{}': waiting for {} at {}", o.rdzv_id,
                           o.nodes_min == o.nodes_max
                               ? fmt::format("{} node(s)", o.nodes_min)
                               : fmt::format("{} to {} nodes", o.nodes_min, o.nodes_max),
                           ports::to_string((*master)->where())),
               {{"endpoint", ports::to_string((*master)->where())}}});
  // The cluster that takes the pod has its reasons, and none of them is the end of the job, which
  // its owner ends by taking the nodes' pods.
  const bool outlived = !o.cluster.elastic_job.empty();
  std::atomic<bool> taken{false};
  const signal_watch signals(
      io, parse_signals(signals_by_default)->ending, [&, sink = log->sink()](int number) {
        metrics.let_go();
        const auto reason = fmt::format("the master received {}",
                                        ports::to_string(ports::exit_status{true, number}));
        if (!outlived || number != SIGTERM)
          return (*master)->interrupt(reason);
        sink("actor-master", {log::level::notice,
                              "master_taken",
                              reason + ": its pod is taken. Training goes on, and the next master "
                                       "takes up the journal",
                              {}});
        taken = true;
        (*master)->give_way();
      });
  const auto verdict = (*master)->farewell();
  tell_linger(metrics, program, log->sink());
  log.reset();
  metrics.linger();
  directory->tidy_up();
  if (taken)
    return 128 + SIGTERM; // as a shell says it
  if (verdict.success)
    return exit_success;
  return verdict.exit_code != 0 ? verdict.exit_code : exit_failure;
}

} // namespace

int troupe::launch::actor_master(int argc, char** argv) {
  prepare_process(program);
  const auto machine = this_machine();
  auto parsed = parse_master(arguments_of(argc, argv), machine);
  if (const auto code = unless_parsed(program, parsed))
    return *code;
  auto& options = std::get<master_program_options>(parsed);
  take_default_token(options.common, options.listen, machine);
  metrics_service metrics(options.metrics, {options.rdzv_id, {}});
  auto log = open_log(options.common, {options.rdzv_id, {}}, metrics.sink());
  if (!log)
    return report_error(program, log.error().what, exit_failure);
  if (const auto served = metrics.serve((*log)->sink()); !served)
    return report_error(program, served.error().what, exit_failure);
  leave(run(options, machine, std::move(*log), metrics));
}
