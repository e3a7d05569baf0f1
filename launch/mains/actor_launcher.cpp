#include "launch/keeper/keeper.hpp"
#include "launch/keeper/life_record.hpp"
#include "launch/mains/programs.hpp"
#include "launch/wiring/command_check.hpp"
#include "launch/wiring/default_token.hpp"
#include "launch/wiring/devices.hpp"
#include "launch/wiring/machine.hpp"
#include "launch/wiring/open_files.hpp"
#include "launch/wiring/placement.hpp"
#include "launch/wiring/printed_ranks.hpp"
#include "launch/wiring/program.hpp"
#include "launch/wiring/store_life.hpp"
#include "launch/wiring/supervisor_life.hpp"
#include "launch/wiring/tuning_file.hpp"
#include "launch/wiring/worker_hooks.hpp"
#include "runtime/os/net/job_token.hpp"
#include "runtime/os/process/local_services.hpp"
#include "topology/network_tree.hpp"

#include <fmt/format.h>

#include <csignal>
#include <string_view>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::launch;

namespace {

constexpr auto program = "actor-launcher";
/// Whatever descends from a worker of this launcher has it in its environment.
constexpr auto mark_variable = "TROUPE_LAUNCHER";
/// Instead of a script: looks at the machine, and starts no job.
constexpr auto doctor_word = "doctor";

std::string node_name_of(const launcher_options& o) {
  if (!o.node_name.empty())
    return o.node_name;
  if (o.rendezvous.node_rank)
    return fmt::format("node-{}", *o.rendezvous.node_rank);
  if (o.rendezvous.standalone)
    return host_name();
  return fmt::format("{}-{}", host_name(), ::getpid());
}

/// Of a launcher inside a launcher the outer one's mark is the beginning.
std::string mark_below(const machine_facts& machine) {
  const auto own = fmt::format("{:016x}", random_seed());
  const auto outer = machine.environment.find(mark_variable);
  if (outer == machine.environment.end() || outer->second.size() > limits::name_max)
    return own;
  return outer->second + "/" + own;
}

/// The token is read once. Every process of the launcher inherits it in memory, so a supervisor
/// that is started again needs no file that may be gone by then.
result<void> read_token(common_options& o) {
  if (o.token_file.empty() || !o.token.empty() || !o.certificate.empty())
    return {};
  const auto token = os::job_token::read(o.token_file);
  if (!token)
    return tl::make_unexpected(token.error());
  o.token = token->secret();
  o.token_from = std::exchange(o.token_file, {});
  return {};
}

/// By a collector of logs, a pipe or a file: there the lines of all ranks mix. What is on a
/// terminal is read there, and a program may do without colours where it has none.
bool stderr_is_read_elsewhere() {
  struct stat is {};
  return ::fstat(STDERR_FILENO, &is) == 0 &&
         (S_ISFIFO(is.st_mode) || S_ISREG(is.st_mode) || S_ISSOCK(is.st_mode));
}

/// Which library the workers load before CUDA, and where it leaves its figures.
result<void> take_trace(const run_directory& directory, worker_contract& contract) {
  const auto library = trace_library();
  if (!library)
    return tl::make_unexpected(library.error());
  const auto figures = directory.trace();
  if (!figures)
    return tl::make_unexpected(figures.error());
  contract.trace_library = *library;
  contract.trace_directory = *figures;
  return {};
}

/// The user's own file, where one is named: of several nodes it may be one that they share.
result<void> take_tuning(const run_directory& directory, launcher_options& o,
                         worker_contract& contract) {
  const auto named = contract.environment.find(tuning_file_variable);
  contract.tuning_file = named == contract.environment.end() || named->second.empty()
                             ? directory.tuning()
                             : named->second;
  o.remarks.push_back(fmt::format("--auto_tunning: data loaders read their batch size in {}; "
                                  "actor-shell set batch-size=N changes it, and nothing else does",
                                  contract.tuning_file));
  return make_tuning_file(contract.tuning_file);
}

/// All that can be found out, and objected to, before there is a second process.
result<launch_facts> facts_of(launcher_options o, const machine_facts& machine) {
  const auto open_files = os::raise_open_files();
  if (const auto why = open_files_validation_error(o, open_files.now))
    return failure(errc::unavailable, *why);
  take_default_token(o.common, place_master(o).master, machine);
  if (auto read = read_token(o.common); !read)
    return tl::make_unexpected(read.error());
  if (const auto good = topology::check({node_name_of(o), o.switches}); !good)
    return failure(errc::invalid, "--switches: " + good.error().what);
  auto contract = contract_on(o, machine);
  if (!contract)
    return tl::make_unexpected(contract.error());
  if (const auto why = command_validation_error(o, *contract))
    return failure(errc::invalid, *why);
  if (const auto why = plugin_missing(o))
    return failure(errc::unavailable, *why);
  take_hccl_port(o, *contract);
  auto directory = run_directory::make(o.streams.log_dir, o.rdzv_id,
                                       o.node_name.empty() ? host_name() : o.node_name);
  if (!directory)
    return tl::make_unexpected(directory.error());
  contract->output.node = node_name_of(o);
  contract->output.keeps_end_of_stderr = o.streams.log_dir.empty() && stderr_is_read_elsewhere();
  contract->output.run_directory = directory->for_workers();
  if (!o.policy.planned_end.stop_file)
    contract->stops.own = directory->stop();
  if (o.trace)
    if (const auto taken = take_trace(*directory, *contract); !taken)
      return tl::make_unexpected(taken.error());
  if (o.auto_tuning)
    if (const auto taken = take_tuning(*directory, o, *contract); !taken)
      return tl::make_unexpected(taken.error());
  contract->environment[mark_variable] = mark_below(machine);
  const checkpoint_memory memory(o.processes_per_node, o.may_have_others());
  contract->checkpoint_memory = memory.descriptors();
  contract->memory_for_others = memory.descriptors_for_others();
  // Workers that are not watched have nowhere to report to.
  const bool watched = o.hangs.action != hang_action::off;
  const progress_memory pages(watched ? o.processes_per_node : 0);
  contract->progress_memory = pages.descriptors();
  contract->keeper = ::getpid();
  if (watched)
    contract->hooks = worker_hooks();
  const auto& mark = contract->environment[mark_variable];
  const worker_socket channel(mark.substr(mark.rfind('/') + 1), o.processes_per_node);
  contract->channel = channel.name();
  return launch_facts{o,
                      machine,
                      *contract,
                      *directory,
                      node_name_of(o),
                      random_seed(),
                      open_files.before,
                      {},
                      memory,
                      pages,
                      channel,
                      std::chrono::steady_clock::now()};
}

/// This process is the keeper: it lives as long as the launcher does.
int keep(const launch_facts& facts) {
  keeper_options keeper;
  keeper.ending_signals = facts.options.signals.ending;
  keeper.passed_on_signals = facts.options.signals.passed_on;
  keeper.mark = fmt::format("{}={}", mark_variable, facts.contract.environment.at(mark_variable));
  keeper.records = place_of_life_records();
  keeper.report_error = [](const std::string& what) { report_error(program, what, exit_failure); };
  keeper.supervise = [&facts](keeper_client& client) { return live(facts, client); };
  keeper.serve_store = [&facts](const store_order& order, const os::unique_fd& answer) {
    serve_store(facts, order, answer);
  };
  keeper.tidy_after_others = run_directory::remove_abandoned;
  keeper.tidy_up = [&facts] { facts.directory.tidy_up(); };
  return run_keeper(keeper);
}

} // namespace

int troupe::launch::actor_launcher(int argc, char** argv) {
  const bool first_is_doctor = argc > 1 && std::string_view(argv[1]) == doctor_word;
  // torchrun runs a file of this name; so do we.
  if (first_is_doctor && ::access(doctor_word, F_OK) != 0) {
    argv[1] = argv[0];
    return doctor_program(argc - 1, argv + 1);
  }
  prepare_process(program);
  const auto machine = this_machine();
  auto parsed = parse_launcher(arguments_of(argc, argv), machine);
  if (const auto code = unless_parsed(program, parsed))
    return *code;
  auto& options = std::get<launcher_options>(parsed);
  if (first_is_doctor)
    options.remarks.emplace_back("'doctor' is a file here, so it is run as the script; troupe "
                                 "doctor looks at this machine instead");
  if (options.new_token) {
    const auto made = make_default_token(machine);
    if (!made)
      return report_error(program, made.error().what, exit_failure);
    std::fputs(made->c_str(), stdout);
    return exit_success;
  }
  if (options.ranks_wanted) {
    const auto text = printed_ranks(*options.ranks_wanted);
    if (!text)
      return report_error(program, text.error().what, exit_usage);
    std::fputs(text->c_str(), stdout);
    return exit_success;
  }
  // One that comes before there is anybody to pass it on to is not worth an end.
  for (const int number : options.signals.passed_on)
    ::signal(number, SIG_IGN);
  const auto facts = facts_of(options, machine);
  if (!facts)
    leave(report_error(program, facts.error().what,
                       facts.error().code == errc::invalid ? exit_usage : exit_failure));
  const int code = keep(*facts);
  facts->directory.tidy_up();
  leave(code);
}
