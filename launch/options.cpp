#include "launch/options.hpp"

#include "runtime/base/limits.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace troupe::launch {

namespace {

constexpr auto version_text = "troupe 0.1.0";

/// torchrun's options that are known and not built yet; each is refused by name instead of being
/// taken for a typing error.
const std::set<std::string>& not_yet() {
  static const std::set<std::string> names{
      "--numa-binding",       "--logs-specs",        "--start-method",    "--signals-to-handle",
      "--virtual-local-rank", "--event-log-handler", "--print-completion"};
  return names;
}

std::string with_dashes(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

/// A CLI11 application that speaks torchrun's dialect: dashes and underscores, PET_* defaults, the
/// last of several values wins, and everything from the first positional argument on belongs to the
/// training program.
class dialect {
 public:
  dialect(const char* name, const char* about, const machine_facts& machine)
      : app_(about, name), machine_(machine) {
    app_.option_defaults()->take_last();
    app_.set_help_flag("-h,--help", "Show this text");
    app_.set_version_flag("--version", version_text);
    app_.get_formatter()->column_width(38);
  }

  template<class T>
  CLI::Option* option(const std::string& names, T& target, const std::string& about) {
    return named(app_.add_option(spellings(names), target, about), names);
  }

  void flag(const std::string& names, bool& target, const std::string& about) {
    app_.add_flag(spellings(names), target, about);
    const auto preset = machine_.environment.find(environment_name(names));
    if (preset != machine_.environment.end())
      target = preset->second == "1";
  }

  void common(common_options& c) {
    auto* group = app_.add_option_group("Troupe");
    group->add_flag_callback(
        "-q,--quiet", [&c] { c.talk = os::verbosity::quiet; }, "Only warnings and errors");
    group->add_flag_callback(
        "-v,--verbose", [&c] { c.talk = os::verbosity::verbose; }, "Also what a closer look wants");
    group->add_option("--json-log", c.json_log, "Write every event as a line of JSON to this file")
        ->type_name("FILE");
    group->add_option("--certificate", c.certificate, "This process's TLS certificate (PEM)")
        ->type_name("FILE");
    group->add_option("--key", c.key, "Its private key (PEM)")->type_name("FILE");
    group
        ->add_option("--authority", c.authority,
                     "The certificate authority peers must be signed by (PEM)")
        ->type_name("FILE");
  }

  CLI::App& app() { return app_; }

  /// Parses; an answer means that there is nothing more to do.
  std::optional<std::variant<just_print, error>> parse(std::vector<std::string> arguments) {
    apply_environment();
    std::reverse(arguments.begin(), arguments.end());
    try {
      app_.parse(std::move(arguments));
    } catch (const CLI::CallForHelp&) {
      return just_print{app_.help()};
    } catch (const CLI::CallForVersion&) {
      return just_print{std::string(version_text) + "\n"};
    } catch (const CLI::ParseError& e) {
      std::string what = e.what();
      return error{errc::invalid, what.substr(0, what.find('\n'))};
    }
    return std::nullopt;
  }

 private:
  /// "--a-b,-x" gets "--a_b" as well.
  static std::string spellings(const std::string& names) {
    std::string all = names;
    std::size_t at = 0;
    while (at <= names.size()) {
      const auto end = std::min(names.find(',', at), names.size());
      auto name = names.substr(at, end - at);
      at = end + 1;
      if (name.compare(0, 2, "--") != 0 || name.find('-', 2) == std::string::npos)
        continue;
      std::replace(name.begin() + 2, name.end(), '-', '_');
      all += "," + name;
    }
    return all;
  }

  static std::string environment_name(const std::string& names) {
    auto at = names.find("--");
    auto name = names.substr(at + 2, names.find(',', at) - at - 2);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c == '-' ? '_' : static_cast<char>(std::toupper(c)); });
    return "PET_" + name;
  }

  CLI::Option* named(CLI::Option* option, const std::string& names) {
    presets_.emplace_back(option, environment_name(names));
    return option;
  }

  /// Defaults from the environment, given to us as data rather than read by the library.
  void apply_environment() {
    for (const auto& [option, name] : presets_) {
      const auto preset = machine_.environment.find(name);
      if (preset != machine_.environment.end())
        option->default_val(preset->second);
    }
  }

  CLI::App app_;
  const machine_facts& machine_;
  std::vector<std::pair<CLI::Option*, std::string>> presets_;
};

std::optional<error> check_common(const common_options& c) {
  const int given = !c.certificate.empty() + !c.key.empty() + !c.authority.empty();
  if (given != 0 && given != 3)
    return error{errc::invalid,
                 "--certificate, --key and --authority belong together: give all three or none"};
  return std::nullopt;
}

error unknown_argument(const std::string& argument) {
  const auto name = with_dashes(argument.substr(0, argument.find('=')));
  if (not_yet().count(name))
    return error{errc::invalid,
                 fmt::format("{} is an option of torchrun that is not built yet", name)};
  return error{errc::invalid, fmt::format("unknown option {} (see --help)", argument)};
}

/// A launcher's options as they were typed, before their grammars are applied.
struct launcher_words {
  std::string nodes = "1", processes = "1", backend = "static", endpoint, settings, redirects = "0",
              tee = "0";
  std::string shown;
  std::optional<std::string> duplicate_stdout, duplicate_stderr;
  std::int64_t node_rank = -1, master_port = -1;
  double shutdown_seconds = std::chrono::duration<double>(limits::stop_workers_within).count();
  double monitor_interval = 0;
};

void declare_launcher(dialect& d, launcher_options& o, launcher_words& w) {
  d.app().prefix_command();

  d.option("--nnodes", w.nodes, "Number of nodes, or MIN:MAX")->type_name("N|MIN:MAX");
  d.option("--nproc-per-node", w.processes, "Training processes on this node")
      ->type_name("N|cpu|gpu|auto");
  d.option("--node-rank", w.node_rank, "This node's rank; without it ranks go by order of arrival")
      ->check(CLI::Range(0, 1 << 20));
  d.option("--rdzv-backend", w.backend, "static or c10d: both are served by the master")
      ->check(CLI::IsMember({"static", "c10d"}));
  d.option("--rdzv-endpoint", w.endpoint,
           "Where the master is, or will be: host[:port], port 29400")
      ->type_name("HOST:PORT");
  d.option("--rdzv-id", o.rdzv_id, "The job's id");
  d.option("--rdzv-conf", w.settings, "join_timeout, last_call_timeout, read_timeout, in seconds")
      ->type_name("K=V,…");
  d.option("--master-addr", o.master_addr, "The same as a static address")->type_name("HOST");
  d.option("--master-port", w.master_port, "and port (29500)")->check(CLI::Range(0, 65'535));
  d.flag("--standalone", o.standalone, "One node, its own master, a port of its own");
  d.option("--max-restarts", o.max_restarts, "How often the group is restarted after a failure")
      ->check(CLI::Range(0u, limits::restarts_max));
  d.option("--monitor-interval", w.monitor_interval,
           "Accepted; ends are noticed by event, not by looking");
  d.option("--role", o.role, "Role name of the workers");
  d.option("--log-dir", o.streams.log_dir, "Where workers' files go")->type_name("DIR");
  d.option(
      "-r,--redirects", w.redirects,
      "Workers' streams that go to files: 0 none, 1 stdout, 2 stderr, 3 both; or rank:which,…");
  d.option("-t,--tee", w.tee, "Streams that go to files and to the console, in the same grammar");
  d.option("--local-ranks-filter", w.shown, "Only these local ranks are seen on the console");
  d.option("--log-line-prefix-template", o.streams.prefix_template,
           "What stands before lines of --tee: ${role_name} ${local_rank} ${rank} ${hostname}");
  d.option("--duplicate-stdout-filters", w.duplicate_stdout,
           "Lines of --tee with any of these words also go to filtered_stdout.log");
  d.option("--duplicate-stderr-filters", w.duplicate_stderr, "The same for filtered_stderr.log");
  d.option("--shutdown-timeout", w.shutdown_seconds,
           "Seconds between a worker's first signal and SIGKILL")
      ->check(CLI::Range(0.0, 86'400.0));
  d.option("--local-addr", o.local_addr, "The address other nodes reach this one at")
      ->type_name("ADDRESS");
  d.option("--node-name", o.node_name, "This node's name within the job");
  d.option("--journal", o.journal, "Where the master of this node keeps its decisions")
      ->type_name("FILE");
  d.option("--outcome-file", o.outcome_file,
           "Write how the job ended to this file, as JSON, instead of printing the summary")
      ->type_name("FILE");
  d.flag("-m,--module", o.module, "The script is a module's name");
  d.flag("--run-path", o.run_path,
         "The script runs by runpy in a child of a Python that is already there");
  d.flag("--no-python", o.no_python, "The script is a program of its own");
  d.common(o.common);
}

result<void> derive_streams(stream_options& o, const launcher_words& w,
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
  return {};
}

/// The grammars, and what options say about each other.
result<void> derive(launcher_options& o, const launcher_words& w, const machine_facts& machine) {
  const auto node_range = parse_nodes(w.nodes);
  if (!node_range)
    return tl::make_unexpected(node_range.error());
  std::tie(o.nodes_min, o.nodes_max) = *node_range;
  const auto count = parse_processes(w.processes, machine);
  if (!count)
    return tl::make_unexpected(count.error());
  o.processes_per_node = *count;
  if (!w.endpoint.empty()) {
    const auto where = parse_endpoint(w.endpoint, 29'400);
    if (!where)
      return failure(errc::invalid, "--rdzv-endpoint: " + where.error().what);
    o.rdzv_endpoint = *where;
  }
  const auto conf = parse_rendezvous_settings(w.settings);
  if (!conf)
    return tl::make_unexpected(conf.error());
  o.rendezvous = *conf;
  if (w.node_rank >= 0)
    o.node_rank = static_cast<std::uint32_t>(w.node_rank);
  if (w.node_rank >= static_cast<std::int64_t>(o.nodes_max))
    return failure(errc::invalid,
                   fmt::format("--node-rank {} does not exist among {} node(s) (--nnodes)",
                               w.node_rank, o.nodes_max));
  if (o.standalone && o.nodes_max > 1)
    return failure(errc::invalid, "--standalone is for one node; leave out --nnodes");
  if (o.module && o.no_python)
    return failure(errc::invalid, "--module and --no-python exclude each other");
  if (w.master_port >= 0)
    o.master_port = static_cast<std::uint16_t>(w.master_port);
  if (auto streams = derive_streams(o.streams, w, machine); !streams)
    return streams;
  o.shutdown_timeout =
      std::chrono::duration_cast<duration>(std::chrono::duration<double>(w.shutdown_seconds));
  if (auto wrong = check_common(o.common))
    return tl::make_unexpected(*wrong);
  return {};
}

} // namespace

parsed<launcher_options> parse_launcher(const std::vector<std::string>& arguments,
                                        const machine_facts& machine) {
  launcher_options o;
  launcher_words w;
  dialect d("actor-launcher",
            "Starts distributed training and keeps it alive: actor-launcher [options] script [its "
            "arguments].\n"
            "Takes torchrun's command line.",
            machine);
  declare_launcher(d, o, w);
  if (auto done = d.parse(arguments)) {
    if (auto* text = std::get_if<just_print>(&*done))
      return *text;
    return std::get<error>(*done);
  }
  o.command = d.app().remaining();
  if (!o.command.empty() && o.command.front() == "--")
    o.command.erase(o.command.begin());
  else if (!o.command.empty() && o.command.front().front() == '-')
    return unknown_argument(o.command.front());
  if (o.command.empty())
    return error{errc::invalid, "which script? (see --help)"};
  if (auto derived = derive(o, w, machine); !derived)
    return derived.error();
  return o;
}

parsed<master_program_options> parse_master(const std::vector<std::string>& arguments,
                                            const machine_facts& machine) {
  master_program_options o;
  std::string nodes = "1", endpoint = "127.0.0.1:29400", settings;
  dialect d("actor-master",
            "The master of one job, for nodes started with actor-launcher --rdzv-endpoint.",
            machine);
  d.option("--listen,--rdzv-endpoint", endpoint, "Where to listen; port 0 picks one")
      ->type_name("HOST:PORT");
  d.option("--nnodes", nodes, "Number of nodes, or MIN:MAX")->type_name("N|MIN:MAX");
  d.option("--rdzv-id", o.rdzv_id, "The job's id");
  d.option("--rdzv-conf", settings, "join_timeout, last_call_timeout, in seconds")
      ->type_name("K=V,…");
  d.option("--max-restarts", o.max_restarts, "How often the group is restarted after a failure")
      ->check(CLI::Range(0u, limits::restarts_max));
  d.option("--journal", o.journal, "Where decisions are kept; an existing one is taken up")
      ->type_name("FILE");
  d.common(o.common);
  if (auto done = d.parse(arguments)) {
    if (auto* text = std::get_if<just_print>(&*done))
      return *text;
    return std::get<error>(*done);
  }
  const auto where = parse_endpoint(endpoint, 29'400);
  if (!where)
    return error{errc::invalid, "--listen: " + where.error().what};
  o.listen = *where;
  const auto node_range = parse_nodes(nodes);
  if (!node_range)
    return node_range.error();
  std::tie(o.nodes_min, o.nodes_max) = *node_range;
  const auto conf = parse_rendezvous_settings(settings);
  if (!conf)
    return conf.error();
  o.rendezvous = *conf;
  if (auto wrong = check_common(o.common))
    return *wrong;
  return o;
}

parsed<shell_options> parse_shell(const std::vector<std::string>& arguments,
                                  const machine_facts& machine) {
  shell_options o;
  std::string endpoint;
  dialect d("actor-shell", "Looks at a living job.", machine);
  d.app().add_option("--master", endpoint, "The job's master")->type_name("HOST:PORT")->required();
  d.app().add_subcommand("tree", "Show the actors of master and nodes, and what each is doing");
  d.app().require_subcommand(1);
  d.common(o.common);
  if (auto done = d.parse(arguments)) {
    if (auto* text = std::get_if<just_print>(&*done))
      return *text;
    return std::get<error>(*done);
  }
  const auto where = parse_endpoint(endpoint, 29'400);
  if (!where)
    return error{errc::invalid, "--master: " + where.error().what};
  o.master = *where;
  if (auto wrong = check_common(o.common))
    return *wrong;
  return o;
}

} // namespace troupe::launch
