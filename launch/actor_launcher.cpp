#include "launch/conclusion.hpp"
#include "launch/job_policy.hpp"
#include "launch/machine.hpp"
#include "launch/macros.hpp"
#include "launch/master_run.hpp"
#include "launch/narrative.hpp"
#include "launch/node_run.hpp"
#include "launch/numa.hpp"
#include "launch/outcome_file.hpp"
#include "launch/placement.hpp"
#include "launch/program.hpp"
#include "launch/run_directory.hpp"
#include "launch/training_program.hpp"
#include "runtime/os/console/console_relay.hpp"
#include "runtime/os/process/launch_plan.hpp"
#include "runtime/os/process/posix_process_host.hpp"
#include "runtime/os/store/asio_store_host.hpp"
#include "runtime/sup/engine.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <filesystem>

#include <unistd.h>

using namespace troupe;
using namespace troupe::launch;

namespace {

constexpr auto program = "actor-launcher";
/// One for the actors, one so that a process being started does not hold them up.
constexpr unsigned engine_threads = 2;

/// What would fail on this node at every restart, found before anybody waits for this node.
std::optional<std::string> objection_to_command(const launcher_options& o,
                                                const worker_contract& contract) {
  const bool is_file = o.run_path || (!o.module && !o.no_python);
  const auto script = substituted(o.command.front(), {{"local_rank", "0"}});
  if (is_file && !std::filesystem::exists(script))
    return fmt::format("script '{}' does not exist", script);
  if (auto why = objection_to_contract(contract, o.processes_per_node))
    return why;
  const auto plan = os::launch_plan::make(worker_spec(contract, {}));
  return plan ? std::nullopt : std::optional(plan.error().what);
}

/// The contract, but for the directory of the workers' files.
result<worker_contract> contract_on(const launcher_options& o, const machine_facts& machine) {
  auto contract = contract_of(o, machine.environment, host_name(), {});
  if (o.numa == numa_binding::none)
    return contract;
  auto cpus = cpus_near_gpus(o.numa, read_numa_topology("/", machine), o.processes_per_node);
  if (!cpus)
    return tl::make_unexpected(cpus.error());
  contract.cpus = std::move(*cpus);
  return contract;
}

std::string node_name_of(const launcher_options& o) {
  if (!o.node_name.empty())
    return o.node_name;
  if (o.rendezvous.node_rank)
    return fmt::format("node-{}", *o.rendezvous.node_rank);
  return fmt::format("{}-{}", host_name(), ::getpid());
}

result<actors::master_options> master_options_of(const launcher_options& o,
                                                 const ports::endpoint& where) {
  actors::master_options m;
  m.membership.job = o.rdzv_id;
  m.membership.nodes_min = o.nodes_min;
  m.membership.nodes_max = o.nodes_max;
  m.rendezvous.nodes_min = o.nodes_min;
  m.rendezvous.nodes_max = o.nodes_max;
  m.rendezvous.join_timeout = o.rendezvous.settings.join_timeout.value_or(limits::join_timeout);
  m.rendezvous.last_call = o.rendezvous.settings.last_call_timeout;
  m.rendezvous.prepare_within = o.shutdown_timeout + limits::prepare_slack;
  m.recovery.max_restarts = o.max_restarts;
  m.recovery.settle = limits::verdict_settles;
  m.gateway.listen_on = where;
  if (auto applied = apply_policy(o.policy, o.processes_per_node, m); !applied)
    return tl::make_unexpected(applied.error());
  return m;
}

/// As for torchrun: then rank 0's worker hosts the store.
bool leaves_store_to_worker(const machine_facts& machine) {
  const auto found = machine.environment.find("TORCH_DISABLE_SHARE_RDZV_TCP_STORE");
  return found != machine.environment.end() && found->second == "1";
}

actors::node_options node_options_of(const launcher_options& o, const machine_facts& machine,
                                     const placement& where, actors::leader::program p) {
  const auto& master = where.master;
  actors::node_options n;
  n.uplink.job = o.rdzv_id;
  n.uplink.node = node_name_of(o);
  n.uplink.address = o.local_addr.empty() ? address_towards(master.host) : o.local_addr;
  n.uplink.slots = o.processes_per_node;
  n.uplink.wanted_rank = o.rendezvous.node_rank;
  if (o.nodes_said) {
    n.uplink.nodes_min = o.nodes_min;
    n.uplink.nodes_max = o.nodes_max;
  }
  n.uplink.master = ports::to_string(master);
  n.uplink.connect_within = o.rendezvous.settings.read_timeout.value_or(limits::connect_within);
  n.leader.node = n.uplink.node;
  n.leader.host = host_name();
  n.leader.slots = o.processes_per_node;
  n.leader.stop_within = o.shutdown_timeout;
  n.leader.hosts_store = !leaves_store_to_worker(machine);
  n.leader.store_port = where.store_port;
  n.program = std::move(p);
  n.master = master;
  n.seed = random_seed();
  return n;
}

class launcher {
 public:
  launcher(const launcher_options& o, const machine_facts& machine, std::unique_ptr<os::logs> log)
      : options_(o), machine_(machine), log_(std::move(log)) {}

  int run() {
    auto contract = contract_on(options_, machine_);
    if (!contract)
      return complain(program, contract.error().what, exit_failure);
    if (const auto why = objection_to_command(options_, *contract))
      return complain(program, *why, exit_failure);
    auto directory = run_directory::make(options_.streams.log_dir, options_.rdzv_id);
    if (!directory)
      return complain(program, directory.error().what, exit_failure);
    contract->output.run_directory = directory->for_workers();
    for (const auto& remark : options_.remarks)
      log_->sink()(program, {log::level::warning, "remark", remark, {}});
    const int code = run_in(*directory, *contract);
    directory->tidy_up();
    return code;
  }

 private:
  int run_in(const run_directory& directory, const worker_contract& contract) {
    const auto open_files = os::raise_open_files();
    auto transport =
        open_transport(io_, options_.common, log_->sink(), options_.rendezvous.settings.lease);
    if (!transport)
      return complain(program, transport.error().what, exit_failure);
    auto host = os::posix_process_host::create(io_, {open_files});
    if (!host)
      return complain(program, host.error().what, exit_failure);
    const std::shared_ptr<ports::process_host> processes = std::move(*host);

    auto where = place_master(options_);
    if (const auto& r = options_.rendezvous; !r.standalone)
      log_->sink()(
          program,
          {log::level::info,
           "endpoint",
           fmt::format("the job meets at {} ({}){}", ports::to_string(r.endpoint), r.endpoint_from,
                       r.node_rank ? fmt::format("; node rank {}", *r.node_rank) : std::string()),
           {{"endpoint", ports::to_string(r.endpoint)}, {"from", r.endpoint_from}}});
    os::store_host_options store_options;
    store_options.log = log_->sink();
    const auto stores = std::make_shared<os::asio_store_host>(store_options);
    // A busy port will not become free by trying again.
    if (where.store_port)
      if (const auto taken =
              stores->open({ports::store_reach::this_machine, where.master.host, where.store_port});
          !taken)
        return complain(program, taken.error().what, exit_failure);
    auto started = host_master(*transport, where, directory);
    if (!started)
      return complain(program, started.error().what, exit_failure);
    const auto master = std::move(*started);
    if (master)
      where.master = master->where();

    output_ = std::make_shared<worker_output>(contract.output, console_);
    const auto node_options = node_options_of(
        options_, machine_, where,
        heard_by(outcome_, contract.output, program_of(contract, output_, processes)));
    auto node = node_run::start(engine_.system(), {*transport, processes, stores}, node_options,
                                master ? log_->sink() : told_by_node(log_->sink()));
    const signal_watch requests(io_, options_.signals.passed_on,
                                [&node](int number) { node->pass_on(number); });
    const signal_watch signals(
        io_, options_.signals.ending, [&node, &master, &node_options](int number) {
          node->interrupt(number);
          if (master)
            master->abandon(fmt::format("the launcher of node {} received {}",
                                        node_options.uplink.node,
                                        ports::to_string(ports::exit_status{true, number})));
        });
    return conclude(node_options.uplink.node, *node, master.get(), *processes);
  }

  /// The master, if this launcher is to run it; nothing if somebody else does. To take the address
  /// is the only way to know whether it is ours and free, also for launchers that start at the same
  /// moment: if it is refused, dialling it is what tells the user more.
  result<std::unique_ptr<master_run>>
  host_master(const std::shared_ptr<ports::transport>& transport, const placement& where,
              const run_directory& directory) {
    if (where.host == placement::hosting::elsewhere)
      return std::unique_ptr<master_run>{};
    auto started = start_master(transport, where.master, directory);
    if (!started && where.host == placement::hosting::if_able &&
        started.error().code == errc::refused)
      return std::unique_ptr<master_run>{};
    return started;
  }

  result<std::unique_ptr<master_run>>
  start_master(const std::shared_ptr<ports::transport>& transport, const ports::endpoint& where,
               const run_directory& directory) {
    auto journal = open_journal(options_.journal, directory);
    if (!journal)
      return tl::make_unexpected(journal.error());
    const auto options = master_options_of(options_, where);
    if (!options)
      return tl::make_unexpected(options.error());
    return master_run::start(engine_.system(), {transport, std::move(*journal)}, *options,
                             log_->sink());
  }

  int conclude(const node_name& name, node_run& node, master_run* master,
               ports::process_host& files) {
    const auto outcome = node.outcome().get();
    // The others hear the verdict from this master before it goes.
    if (master) {
      master->verdict().wait();
      master->everyone_left().wait_for(limits::farewell_within);
    }
    node.shutdown();
    if (master)
      master->shutdown();
    const auto unshown = output_->drain();
    log_.reset();
    if (unshown)
      complain(program, *unshown, exit_failure);
    if (outcome_->wanted())
      if (auto written = outcome_->write(name, outcome); !written)
        complain(program, written.error().what, exit_failure);
    if (outcome.success)
      return exit_success;
    if (!outcome_->wanted()) {
      // The master's own launcher has just told why in its narrative.
      if (!master || !outcome.verdict)
        complain(program, outcome.reason, exit_failure);
      if (outcome.verdict || outcome.failures)
        say(conclude_failure(options_.command.front(), name, outcome, machine_.environment, files));
    }
    const int own = outcome.verdict ? outcome.verdict->read()->getExitCode() : 0;
    if (own != 0)
      return own;
    return options_.propagate_exit_code && outcome.verdict ? exit_code_of(*outcome.verdict)
                                                           : exit_failure;
  }

  const launcher_options& options_;
  const machine_facts& machine_;
  std::unique_ptr<os::logs> log_;
  const std::array<os::console_target, 2> targets_ = os::own_console();
  const std::shared_ptr<os::file_relay> console_ =
      std::make_shared<os::file_relay>(targets_[0], targets_[1]);
  std::shared_ptr<worker_output> output_;
  const std::shared_ptr<outcome_file> outcome_ =
      std::make_shared<outcome_file>(options_.outcome_file);
  os::io_thread io_;
  sup::engine engine_{engine_threads};
};

} // namespace

int main(int argc, char** argv) {
  prepare_process();
  const auto machine = this_machine();
  const auto parsed = parse_launcher(arguments_of(argc, argv), machine);
  if (const auto code = unless_parsed(program, parsed))
    return *code;
  const auto& options = std::get<launcher_options>(parsed);
  // One that comes before there is anybody to pass it on to is not worth an end.
  for (const int number : options.signals.passed_on)
    ::signal(number, SIG_IGN);
  auto log = open_log(options.common);
  if (!log)
    return complain(program, log.error().what, exit_failure);
  leave(launcher(options, machine, std::move(*log)).run());
}
