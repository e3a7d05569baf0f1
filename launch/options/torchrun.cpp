#include "launch/options/arguments.hpp"
#include "launch/options/behind_script.hpp"
#include "launch/options/scheduler_environment.hpp"
#include "launch/options/values.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::launch {

namespace {

option_group nodes_group(torchrun_arguments& w) {
  return {"Nodes and processes",
          {{scope::job,
            {"--nnodes"},
            "N|MIN:MAX|auto",
            "Number of nodes, or the fewest and the most (1); auto: as Slurm or Volcano says",
            into(w.nodes)},
           {scope::node,
            {"--nproc-per-node"},
            "N|auto|cpu|gpu|npu|xpu",
            "Training processes on this node (1); auto: one per device of --accelerator, else per "
            "CPU; gpu, npu: one per such device",
            into(w.processes)},
           {scope::node,
            {"--node-rank"},
            "N",
            "This node's rank; without it ranks go by order of arrival. Not with c10d",
            into(w.rendezvous.node_rank)}}};
}

option_group rendezvous_group(launcher_options& o, rendezvous_arguments& w) {
  return {"Where nodes meet (none of it for a job on one node)",
          {{scope::node,
            {"--standalone"},
            "",
            "One node, a master and an id of its own",
            into(w.standalone)},
           often({"static", "c10d"}, {scope::node,
                                      {"--rdzv-backend"},
                                      "NAME",
                                      "static (default) or c10d: the master serves both",
                                      into(w.backend)}),
           {scope::node,
            {"--rdzv-endpoint"},
            "HOST[:PORT]",
            "Where the master is, or will be; the node that has this address runs it (port 29400)",
            into(w.endpoint)},
           {scope::job,
            {"--rdzv-id"},
            "NAME",
            "The job's id, and the beginning of its log directory (none)",
            into(o.rdzv_id)},
           {scope::job,
            {"--rdzv-conf"},
            "KEY=VALUE,...",
            "In seconds: join_timeout (600), last_call_timeout (how long the first world waits for "
            "more than MIN nodes; else until no further node comes), read_timeout (60), "
            "keep_alive_interval times keep_alive_max_attempt (2: until a silent node is lost); "
            "is_host",
            into(w.conf)},
           {scope::node,
            {"--master-addr"},
            "HOST",
            "static: the address of node rank 0 (what Slurm or Volcano says, else 127.0.0.1)",
            into(w.master_addr)},
           {scope::node,
            {"--master-port"},
            "PORT",
            "static: and its port (29500)",
            into(w.master_port)},
           {scope::node,
            {"--local-addr"},
            "ADDRESS",
            "This node's address for others, and to dial from (the one that leads to the master)",
            into(o.local_addr)}}};
}

option_group failures_group(torchrun_arguments& w) {
  return {
      "Failures and signals",
      {{scope::node,
        {"--max-restarts"},
        "N",
        "How many failures of its workers each node may have; all start again after each (0)",
        into(w.max_restarts)},
       {scope::node,
        {"--shutdown-timeout"},
        "SECONDS",
        "From the first signal to SIGKILL, at the end and before a restart, for workers and what "
        "they leave behind (30, or TORCH_ELASTIC_SHUTDOWN_TIMEOUT)",
        into(w.shutdown_timeout)},
       {scope::node,
        {"--signals-to-handle"},
        "SIGNAL,...",
        "Passed to the workers; then the job ends. After SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH and "
        "SIGURG it goes on (SIGTERM,SIGINT,SIGHUP,SIGQUIT)",
        into(w.signals)},
       {scope::node,
        {"--monitor-interval"},
        "SECONDS",
        "Accepted and not needed: the end of a process is an event here, and is not polled for",
        into(w.monitor_interval)}}};
}

option_group program_group(launcher_options& o, torchrun_arguments& w) {
  return {
      "The training program",
      {{scope::worker,
        {"-m", "--module"},
        "",
        "The script is a module's name, as for python -m",
        into(o.module)},
       {scope::worker,
        {"--no-python"},
        "",
        "The script is a program of its own",
        into(o.no_python)},
       {scope::worker,
        {"--run-path"},
        "",
        "The script, by its absolute path, is run by runpy.run_path",
        into(o.run_path)},
       among({"spawn", "fork", "forkserver"},
             {scope::worker,
              {"--start-method"},
              "HOW",
              "spawn (default), fork or forkserver: accepted, each worker is a process of its own "
              "anyway",
              into(w.start_method)}),
       {scope::worker,
        {"--role"},
        "NAME",
        "The workers' role, and the prefix of their lines (default)",
        into(o.role)},
       {scope::worker,
        {"--virtual-local-rank"},
        "",
        "Each worker sees one GPU and is local rank 0",
        into(o.virtual_local_rank)},
       typed_only(
           among({"node", "socket", "exclusive", "core-complex"},
                 {scope::worker,
                  {"--numa-binding"},
                  "HOW",
                  "Bind each worker to CPUs near its GPU: all of its NUMA node or socket, an "
                  "exclusive share of the node, or one core-complex (node, socket, exclusive, "
                  "core-complex)",
                  into(w.numa_binding)}))}};
}

option_group streams_group(stream_options& s, torchrun_arguments& w) {
  return {
      "Output of the workers",
      {{scope::node,
        {"--log-dir"},
        "DIR",
        "Where files go, each run into a directory of its own (a temporary one); /dev/null: no "
        "files",
        into(s.log_dir)},
       {scope::node,
        {"-r", "--redirects"},
        "WHICH",
        "Streams that go to files: 0 none (default), 1 stdout, 2 stderr, 3 both; or "
        "RANK:WHICH,... with local ranks",
        into(w.redirects)},
       {scope::node,
        {"-t", "--tee"},
        "WHICH",
        "Streams that go to files and to the console; the same words (0)",
        into(w.tee)},
       in_full({scope::node,
                {"--log-line-prefix-template"},
                "TEXT",
                "What stands before lines of --tee, with ${role_name} ${local_rank} ${rank} "
                "${hostname} ${node} ${time} ([${role_name}${local_rank}]:)",
                into(s.prefix_template)}),
       {scope::node,
        {"--local-ranks-filter"},
        "RANK,...",
        "Only these local ranks are seen on the console",
        into(w.shown)},
       {scope::node,
        {"--duplicate-stdout-filters"},
        "WORD,...",
        "Lines of --tee with any of these words go to filtered_stdout.log as well; ,, is a comma",
        into(w.duplicate_stdout)},
       {scope::node,
        {"--duplicate-stderr-filters"},
        "WORD,...",
        "The same for stderr and filtered_stderr.log",
        into(w.duplicate_stderr)},
       {scope::node,
        {"--event-log-handler"},
        "NAME",
        "Only null: events are written by --json-log",
        into(w.event_log_handler)},
       typed_only({scope::node,
                   {"--logs-specs"},
                   "NAME",
                   "Refused: names a plug-in written in Python",
                   into(w.logs_specs)})}};
}

} // namespace

void declare_torchrun(argument_grammar& d, launcher_options& o, torchrun_arguments& w) {
  d.add(nodes_group(w));
  d.add(rendezvous_group(o, w.rendezvous));
  d.add(failures_group(w));
  d.add(program_group(o, w));
  d.add(streams_group(o.streams, w));
}

result<std::uint32_t> parse_processes(const std::string& text, const machine_facts& machine,
                                      accelerator kind) {
  const auto& facts = facts_about(text == "npu" ? accelerator::ascend : kind);
  const auto devices = visible_devices(facts.kind, machine.all_devices(), machine.environment);
  if (text == "cpu")
    return machine.cpus;
  if (text == "auto")
    return devices > 0 ? devices : machine.cpus;
  if (text == "gpu" || text == "npu") {
    if (devices == 0)
      return failure(errc::invalid, fmt::format("--nproc-per-node {}: this machine shows no {} "
                                                "({}, {})",
                                                text, facts.device, facts.nodes,
                                                visible_variable(facts.kind, machine.environment)));
    return devices;
  }
  if (text == "xpu")
    return failure(errc::invalid,
                   "--nproc-per-node xpu: Intel GPUs cannot be counted here; give their number");
  const auto n = python_int(text);
  if (!n)
    return failure(
        errc::invalid,
        fmt::format("--nproc-per-node: '{}' is not a number, auto, cpu, gpu or npu", text));
  if (*n < 1 || *n > limits::local_world_max)
    return failure(errc::invalid,
                   fmt::format("--nproc-per-node: {} processes; 1 to {} are possible", *n,
                               limits::local_world_max));
  return static_cast<std::uint32_t>(*n);
}

namespace {

result<void> derive_streams(stream_options& o, const torchrun_arguments& w,
                            const machine_facts& machine) {
  const auto redirects = parse_stream_choice("--redirects", w.redirects);
  if (!redirects)
    return tl::make_unexpected(redirects.error());
  o.redirects = *redirects;
  const auto tee = parse_stream_choice("--tee", w.tee);
  if (!tee)
    return tl::make_unexpected(tee.error());
  o.tee = *tee;
  const auto shown = parse_rank_filter(w.shown);
  if (!shown)
    return tl::make_unexpected(shown.error());
  o.shown = *shown;
  const auto older_way = machine.environment.find("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE");
  if (o.prefix_template.empty() && older_way != machine.environment.end())
    o.prefix_template = older_way->second;
  if (w.duplicate_stdout)
    o.duplicate_stdout = parse_words(*w.duplicate_stdout);
  if (w.duplicate_stderr)
    o.duplicate_stderr = parse_words(*w.duplicate_stderr);
  if (w.event_log_handler != "null")
    return failure(errc::invalid,
                   fmt::format("--event-log-handler: there is no '{}' here, only null; --json-log "
                               "FILE writes every event",
                               w.event_log_handler));
  if (w.logs_specs)
    return failure(errc::invalid, fmt::format("--logs-specs: '{}' would be a plug-in written in "
                                              "Python, and the launcher loads none",
                                              *w.logs_specs));
  return {};
}

result<duration> derive_shutdown_timeout(const torchrun_arguments& w,
                                         const machine_facts& machine) {
  constexpr std::int64_t most = 86'400;
  auto name = "--shutdown-timeout";
  auto seconds = w.shutdown_timeout;
  const auto preset = machine.environment.find("TORCH_ELASTIC_SHUTDOWN_TIMEOUT");
  if (!seconds && preset != machine.environment.end()) {
    name = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT";
    seconds = python_int(preset->second);
    if (!seconds)
      return failure(errc::invalid,
                     fmt::format("{}: '{}' is not a whole number", name, preset->second));
  }
  if (!seconds)
    return duration(limits::stop_workers_within);
  if (*seconds < 0 || *seconds > most)
    return failure(errc::invalid,
                   fmt::format("{}: {} seconds; 0 to {} are possible", name, *seconds, most));
  return duration(std::chrono::seconds(*seconds));
}

void derive_program(launcher_options& o, const torchrun_arguments& w,
                    const machine_facts& machine) {
  const auto& modes = w.numa_binding;
  if (modes)
    o.numa = *modes == "node"        ? numa_binding::node
             : *modes == "socket"    ? numa_binding::socket
             : *modes == "exclusive" ? numa_binding::exclusive
                                     : numa_binding::core_complex;
  o.start = w.start_method == "fork"         ? start_method::fork
            : w.start_method == "forkserver" ? start_method::forkserver
                                             : start_method::spawn;
  if (o.processes_per_node > 1 && machine.environment.count("OMP_NUM_THREADS") == 0) {
    o.omp_threads = 1;
    o.remarks.emplace_back(
        "OMP_NUM_THREADS is 1 in each worker, as it was not set: with more they may be faster, or "
        "overload this machine");
  }
}

} // namespace

namespace {

result<std::pair<std::uint32_t, std::uint32_t>>
nodes_found(const result<scheduler_environment>& around) {
  if (!around)
    return tl::make_unexpected(around.error());
  if (!around->nodes)
    return failure(errc::invalid, "--nnodes auto: neither Slurm's nor Volcano's variables are "
                                  "there to say how many nodes there are");
  return std::pair{*around->nodes, *around->nodes};
}

} // namespace

result<void> check_name(const char* option, const std::string& name, std::size_t most) {
  if (name.size() > most)
    return failure(errc::invalid,
                   fmt::format("{}: {} characters; {} are possible", option, name.size(), most));
  return {};
}

result<void> derive_torchrun(launcher_options& o, const torchrun_arguments& w,
                             const machine_facts& machine,
                             const result<scheduler_environment>& around) {
  const auto nodes = w.nodes == "auto" ? nodes_found(around) : parse_nodes(w.nodes);
  if (!nodes)
    return tl::make_unexpected(nodes.error());
  std::tie(o.nodes_min, o.nodes_max) = *nodes;
  o.nodes_said = w.nodes != torchrun_arguments{}.nodes;
  const auto processes = parse_processes(w.processes, machine, o.devices);
  if (!processes)
    return tl::make_unexpected(processes.error());
  o.processes_per_node = *processes;
  if (w.max_restarts < 0 || w.max_restarts > limits::restarts_max)
    return failure(errc::invalid, fmt::format("--max-restarts: {} restarts; 0 to {} are possible",
                                              w.max_restarts, limits::restarts_max));
  o.max_restarts = static_cast<std::uint32_t>(w.max_restarts);
  const auto rendezvous = derive_rendezvous(w.rendezvous, o.nodes_max, around);
  if (!rendezvous)
    return tl::make_unexpected(rendezvous.error());
  o.rendezvous = *rendezvous;
  if (o.rendezvous.standalone)
    o.rdzv_id = machine.fresh_id;
  else if (o.rendezvous.backend == rendezvous_backend::dynamic &&
           w.rendezvous.node_rank.value_or(0) != 0)
    o.remarks.emplace_back(
        "--node-rank says nothing with --rdzv-backend c10d: ranks go by order of "
        "arrival");
  if (auto misplaced = misplaced_option(o.command); !misplaced.empty())
    o.remarks.push_back(std::move(misplaced));
  if (auto streams = derive_streams(o.streams, w, machine); !streams)
    return streams;
  const auto timeout = derive_shutdown_timeout(w, machine);
  if (!timeout)
    return tl::make_unexpected(timeout.error());
  o.shutdown_timeout = *timeout;
  const auto signals = parse_signals(w.signals);
  if (!signals)
    return tl::make_unexpected(signals.error());
  o.signals = *signals;
  if (o.module && o.no_python && !o.run_path)
    return failure(errc::invalid, "--module and --no-python exclude each other");
  derive_program(o, w, machine);
  for (const auto& [option, name] :
       {std::pair{"--rdzv-id", &o.rdzv_id}, std::pair{"--role", &o.role}})
    if (auto fits = check_name(option, *name); !fits)
      return fits;
  return {};
}

} // namespace troupe::launch
