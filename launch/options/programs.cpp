#include "launch/options/arguments.hpp"
#include "launch/options/job_words.hpp"
#include "launch/options/journal_place.hpp"
#include "launch/options/recovery_words.hpp"
#include "launch/options/scheduler_environment.hpp"
#include "launch/options/version.hpp"

#include <fmt/format.h>

/// Each program's argument grammar, put together and read.
namespace troupe::launch {

namespace {

refusal refused(const error& e) {
  return {e.what};
}

/// Where progress is asked for it alone bounds the restarts, unless a bound was given.
std::uint32_t restarts_of(std::int64_t given, const job_policy& policy) {
  return given == 0 && policy.no_progress_limit ? limits::restarts_max
                                                : static_cast<std::uint32_t>(given);
}

messages::job_word nodes_word(std::uint32_t min, std::uint32_t max) {
  return {nodes_option, fmt::format("{}:{}", min, max), false, false, {}};
}

/// What names the master outright goes before torchrun's variables for it.
machine_facts as_seen(const machine_facts& machine, const result<scheduler_environment>& around) {
  auto seen = machine;
  if (around && around->named)
    for (const auto* name : {"PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_RDZV_ENDPOINT"})
      seen.environment.erase(name);
  return seen;
}

template<class Options>
using answer = std::optional<parsed<Options>>;

/// Reads into `out`, or answers what ends it.
template<class Options>
answer<Options> read(const argument_grammar& d, const std::vector<std::string>& arguments,
                     const machine_facts& machine, argument_grammar::positional& out) {
  auto said = d.parse(arguments, machine.environment);
  if (auto* text = std::get_if<just_print>(&said))
    return *text;
  if (auto* wrong = std::get_if<refusal>(&said))
    return *wrong;
  out = std::move(std::get<argument_grammar::positional>(said));
  return std::nullopt;
}

/// What is wrong is told of where it was given.
template<class Options>
parsed<Options> by_its_source(parsed<Options> all,
                              const std::map<std::string, std::string>& variables) {
  if (auto* wrong = std::get_if<refusal>(&all))
    return argument_grammar::by_its_source(std::move(*wrong), variables);
  return all;
}

} // namespace

void declare_answers(argument_grammar& d, std::size_t columns, documents what) {
  const auto answers = [](option o, std::function<std::string(const std::string&)> answer) {
    o.answer = std::move(answer);
    return o;
  };
  auto help =
      answers({scope::process, {"-h", "--help"}, "", "Show the options that are needed most"},
              [&d, columns](const auto&) { return d.help(columns); });
  auto help_all = in_full(answers({scope::process, {"--help-all"}, "", "Show all options"},
                                  [&d, columns](const auto&) { return d.help_all(columns); }));
  auto version = in_full(answers({scope::process, {"--version"}, "", "Show the version"},
                                 [](const auto&) { return version_text(); }));
  if (what == documents::none) {
    d.add({"Help", {std::move(help), std::move(help_all), std::move(version)}});
    return;
  }
  auto completion =
      in_full(among({"bash", "zsh", "fish", "tcsh"},
                    answers({scope::process,
                             {"--print-completion"},
                             "SHELL",
                             "Print a completion script for bash, zsh, fish or tcsh"},
                            [&d](const std::string& shell) { return d.completion(shell); })));
  auto manual = in_full(among(
      {"man", "markdown"}, answers({scope::process,
                                    {"--print-manual"},
                                    "FORMAT",
                                    "Print all options for man or as markdown"},
                                   [&d](const std::string& format) { return d.manual(format); })));
  d.add({"Help",
         {std::move(help), std::move(help_all), std::move(version), std::move(completion),
          std::move(manual)}});
}

namespace {

void declare_most_used(argument_grammar& d) {
  d.show({{"all GPUs of this machine; failures restart the workers three times",
           "actor-launcher --nproc-per-node gpu --max-restarts 3 train.py"},
          {"two machines, this line on each (once before: actor-launcher --new-token)",
           "actor-launcher --nnodes 2 --rdzv-endpoint host0:29400 train.py"},
          {"what this machine lacks for it", "actor-launcher doctor train.py"},
          {"look into what runs here", "actor-shell tree"}});
  d.most_used({"--nnodes",     "--nproc-per-node", "--rdzv-endpoint",
               "--rdzv-id",    "--max-restarts",   "--shutdown-timeout",
               "--module",     "--no-python",      "--python",
               "--log-dir",    "--redirects",      "--tee",
               "--token-file", "--new-token",      "--json-log",
               "--quiet",      "--verbose",        "--help",
               "--help-all",   "--version"});
}

} // namespace

parsed<launcher_options> parse_launcher(const std::vector<std::string>& arguments,
                                        const machine_facts& machine) {
  argument_grammar d(
      "actor-launcher", "[options] script [arguments of the script]",
      "Starts distributed training and keeps it alive. Takes torchrun's command line: options "
      "with dashes or underscores, shortened as long as they are unique; every one of them "
      "also as a variable, PET_NNODES for --nnodes. What follows the script belongs to it.");
  declare_most_used(d);
  d.add_verb({"doctor", "say what this machine lacks for the job, and start none"});
  return read_launcher(d, arguments, machine, script::needed);
}

namespace {

parsed<launcher_options> understood(argument_grammar& d, const std::vector<std::string>& arguments,
                                    const machine_facts& machine, script wanted,
                                    argument_grammar::positional& found) {
  launcher_options o;
  torchrun_arguments torchrun;
  dlrover_arguments dlrover;
  policy_arguments policy;
  hang_arguments hangs;
  node_check_arguments check;
  cluster_arguments cluster;
  std::optional<std::string> python, above;
  metrics_arguments metrics;
  declare_torchrun(d, o, torchrun);
  declare_troupe(d, o, python);
  declare_common(d, o.common);
  d.add(policy_group(policy));
  d.add(hangs_group(hangs));
  d.add(node_check_group(check));
  d.add(topology_group(policy.topology));
  d.add(planned_end_group(policy.planned_end));
  d.add(metrics_group(metrics));
  d.add(cluster_group(cluster));
  declare_own_place(d, o, above);
  declare_dlrover(d, dlrover, policy);
  declare_answers(d, machine.columns,
                  wanted == script::needed ? documents::printed : documents::none);
  const auto around = find_scheduler_environment(machine.environment, machine.host);
  if (auto over = read<launcher_options>(d, arguments, as_seen(machine, around), found))
    return *over;
  o.command = found.rest;
  o.arguments = arguments;
  if (o.new_token)
    return o;
  if (o.print_ranks) {
    const auto topology = derive_topology(policy.topology);
    if (!topology)
      return refused(topology.error());
    o.policy.topology = *topology;
    if (auto wrong = derive_ranks_request(o, torchrun, policy); !wrong)
      return refused(wrong.error());
    return o;
  }
  if (o.command.empty() && wanted == script::needed)
    return refusal{"which script? (see --help)"};
  if (auto wrong = derive_accelerator(o, dlrover, torchrun.processes, machine); !wrong)
    return refused(wrong.error());
  if (dlrover.auto_config)
    if (auto wrong = apply_auto_config(torchrun, check, found, machine, o.devices); !wrong)
      return refused(wrong.error());
  if (auto wrong = derive_torchrun(o, torchrun, machine, around); !wrong)
    return refused(wrong.error());
  if (auto wrong = derive_dlrover(o, dlrover, machine); !wrong)
    return refused(wrong.error());
  const auto sizes = derive_policy(policy, {o.nodes_min, o.nodes_max}, machine.environment);
  if (!sizes)
    return refused(sizes.error());
  o.policy = *sizes;
  const auto recovery = recovery_remarks(o.policy.recover_strategy, machine.environment);
  if (!recovery)
    return refused(recovery.error());
  o.remarks.insert(o.remarks.end(), recovery->begin(), recovery->end());
  const auto about_hangs = derive_hangs(hangs, machine.environment);
  if (!about_hangs)
    return refused(about_hangs.error());
  o.hangs = *about_hangs;
  const auto about_check = derive_node_check(check);
  if (!about_check)
    return refused(about_check.error());
  o.check = *about_check;
  if (auto how = o.check.wanted ? check_remark(o.devices) : std::nullopt)
    o.remarks.push_back(*how);
  const auto about_metrics = derive_metrics(metrics);
  if (!about_metrics)
    return refused(about_metrics.error());
  o.metrics = *about_metrics;
  const auto about_cluster = derive_cluster(cluster);
  if (!about_cluster)
    return refused(about_cluster.error());
  o.cluster = *about_cluster;
  if (auto wrong = wrong_journal(o.journal))
    return refused(*wrong);
  o.max_restarts = restarts_of(o.max_restarts, o.policy);
  if (auto wrong = check_name("--node-name", o.node_name, limits::node_name_max); !wrong)
    return refused(wrong.error());
  const auto switches = parse_switches(above.value_or(""));
  if (!switches)
    return refused(switches.error());
  o.switches = *switches;
  o.machine = machine_names(machine.environment);
  if (auto wrong = derive_master_away(o))
    return refused(*wrong);
  if (auto wrong = derive_interpreter(o, python, machine))
    return refused(*wrong);
  if (auto wrong = derive_copy_rate(o))
    return refused(*wrong);
  if (auto wrong = derive_common(o.common, machine))
    return refused(*wrong);
  o.of_job = job_words_of(found, machine.environment);
  if (o.nodes_said)
    o.of_job.push_back(nodes_word(o.nodes_min, o.nodes_max));
  if (dlrover.auto_config && check.network_check && !find(o.of_job, check_option))
    o.of_job.push_back({check_option, {}, true, false, {}});
  for (const auto& unheard : parts_of_no_check(found.said, o.check))
    o.remarks.push_back(fmt::format("{} has no effect without {}", unheard.first, unheard.second));
  for (const auto& [name, given] : found.said)
    if (given.whose == scope::master)
      o.of_master.push_back(name);
  return o;
}

/// Words come over a link: none of them may say more than what is the job's, nor which job it is,
/// nor have the master's actors read a file of its machine.
std::optional<refusal> not_of_the_job(const argument_grammar& d, const messages::job_words& words) {
  for (const auto& word : words) {
    const auto whose = d.scope_of(word.name.substr(0, word.name.find(' ')));
    if ((whose != scope::job && whose != scope::both) || word.name == id_option)
      return refusal{fmt::format("{} is no option of the job", word.name)};
    if (word.name == elasticity_option && !word.value.empty() && word.content.empty())
      return refusal{fmt::format("{} {}: the node has not sent the file", word.name, word.value)};
  }
  return std::nullopt;
}

parsed<master_program_options> understood(const std::vector<std::string>& arguments,
                                          const machine_facts& machine,
                                          argument_grammar::positional& found,
                                          const messages::job_words& from_node = {}) {
  master_program_options o;
  std::string nodes = "1", endpoint = "127.0.0.1:29400", conf;
  metrics_arguments metrics;
  std::optional<std::int64_t> max_restarts;
  policy_arguments policy;
  hang_arguments hangs;
  node_check_arguments check;
  cluster_arguments cluster;
  argument_grammar d(
      "actor-master", "[options]",
      "The master of one job, for nodes started with actor-launcher --rdzv-endpoint.");
  d.add(
      {"The job",
       {{scope::node,
         {"--listen", "--rdzv-endpoint"},
         "HOST:PORT",
         "Where to listen (127.0.0.1:29400); port 0 picks one, and host * is every address",
         into(endpoint)},
        {scope::job,
         {"--nnodes"},
         "N|MIN:MAX",
         "Number of nodes, or the fewest and the most (1)",
         into(nodes)},
        {scope::job,
         {"--node_unit"},
         "N",
         "A world has a multiple of so many nodes (1)",
         into(policy.node_unit)},
        {scope::job, {"--rdzv-id"}, "NAME", "The job's id (none)", into(o.rdzv_id)},
        {scope::job,
         {"--rdzv-conf"},
         "KEY=VALUE,...",
         "In seconds: join_timeout (600) and last_call_timeout (how long the first world waits for "
         "more than MIN nodes; else until no further node comes); keep_alive_interval times "
         "keep_alive_max_attempt (2): until a silent node is lost",
         into(conf)},
        {scope::job,
         {"--max-restarts"},
         "N",
         "How many failures of its workers each node may have (the most that a node says)",
         into(max_restarts)},
        {scope::master,
         {"--journal"},
         "FILE",
         "Where decisions are kept; an existing one is taken up. configmap:NAME: in a ConfigMap, "
         "for "
         "a pod without a volume; needs a role that may get, create and update configmaps",
         into(o.journal)}}});
  d.add(policy_group(policy));
  d.add(hangs_group(hangs));
  d.add(node_check_group(check));
  d.add(topology_group(policy.topology));
  d.add(planned_end_group(policy.planned_end));
  d.add(metrics_group(metrics));
  d.add(cluster_group(cluster));
  d.add(elastic_job_group(cluster));
  declare_common(d, o.common);
  declare_answers(d, machine.columns);
  if (auto wrong = not_of_the_job(d, from_node))
    return *wrong;
  if (auto over = read<master_program_options>(d, arguments, machine, found))
    return *over;
  if (!found.rest.empty())
    return refusal{
        fmt::format("'{}' is no option of actor-master (see --help)", found.rest.front())};
  // "*:29400": on all addresses of both families, as far as the machine has them.
  const bool on_all = endpoint == "*" || endpoint.compare(0, 2, "*:") == 0;
  const auto where =
      parse_endpoint(on_all ? "0.0.0.0" + endpoint.substr(1) : endpoint, rendezvous_port);
  if (!where)
    return refusal{"--listen: " + where.error().what};
  o.listen = on_all ? ports::endpoint{"*", where->port} : *where;
  const auto range = parse_nodes(nodes);
  if (!range)
    return refused(range.error());
  std::tie(o.nodes_min, o.nodes_max) = *range;
  const auto sizes = derive_policy(policy, *range, machine.environment);
  if (!sizes)
    return refused(sizes.error());
  o.policy = *sizes;
  const auto about_hangs = derive_hangs(hangs, machine.environment);
  if (!about_hangs)
    return refused(about_hangs.error());
  o.hangs = *about_hangs;
  const auto about_check = derive_node_check(check);
  if (!about_check)
    return refused(about_check.error());
  o.check = *about_check;
  const auto about_metrics = derive_metrics(metrics);
  if (!about_metrics)
    return refused(about_metrics.error());
  o.metrics = *about_metrics;
  const auto about_cluster = derive_cluster(cluster);
  if (!about_cluster)
    return refused(about_cluster.error());
  o.cluster = *about_cluster;
  if (auto wrong = wrong_journal(o.journal))
    return refused(*wrong);
  const auto settings = parse_rendezvous_settings(conf);
  if (!settings)
    return refused(settings.error());
  o.rendezvous = *settings;
  if (max_restarts && (*max_restarts < 0 || *max_restarts > limits::restarts_max))
    return refusal{fmt::format("--max-restarts: {} restarts; 0 to {} are possible", *max_restarts,
                               limits::restarts_max)};
  if (max_restarts || o.policy.no_progress_limit)
    o.max_restarts = restarts_of(max_restarts.value_or(0), o.policy);
  if (auto wrong = derive_common(o.common, machine))
    return refused(*wrong);
  o.of_job = job_words_of(found, machine.environment);
  o.nodes_said = found.said.count(nodes_option) != 0;
  if (o.nodes_said)
    o.of_job.push_back(nodes_word(o.nodes_min, o.nodes_max));
  return o;
}

} // namespace

parsed<launcher_options> read_launcher(argument_grammar& d,
                                       const std::vector<std::string>& arguments,
                                       const machine_facts& machine, script wanted) {
  argument_grammar::positional found;
  auto all = understood(d, arguments, machine, wanted, found);
  return by_its_source(std::move(all), found.variables);
}

parsed<master_program_options> parse_master(const std::vector<std::string>& arguments,
                                            const machine_facts& machine) {
  argument_grammar::positional found;
  auto all = understood(arguments, machine, found);
  return by_its_source(std::move(all), found.variables);
}

namespace {

/// Of an option that both have said the master's own is the last, and counts. What a variable says
/// would not go before a word, so a word for an option that the master was told is left out.
std::vector<std::string> with_words(const std::vector<std::string>& arguments,
                                    const messages::job_words& told_itself,
                                    const messages::job_words& from_node,
                                    const std::string& own_conf) {
  std::vector<std::string> all;
  std::string conf;
  for (const auto& word : from_node) {
    const auto blank = word.name.find(' ');
    if (find(told_itself, word.name))
      continue;
    if (blank != std::string::npos)
      conf += (conf.empty() ? "" : ",") + word.name.substr(blank + 1) + "=" + word.value;
    else
      all.push_back(word.flag ? word.name : word.name + "=" + word.value);
  }
  all.insert(all.end(), arguments.begin(), arguments.end());
  if (!conf.empty()) // of one key the last counts
    all.push_back(
        fmt::format("{}={}{}{}", conf_option, conf, own_conf.empty() ? "" : ",", own_conf));
  return all;
}

} // namespace

parsed<master_program_options> parse_master(const std::vector<std::string>& arguments,
                                            const machine_facts& machine,
                                            const messages::job_words& from_node) {
  argument_grammar::positional own;
  auto alone = understood(arguments, machine, own);
  if (!std::holds_alternative<master_program_options>(alone))
    return by_its_source(std::move(alone), own.variables);
  const auto told_itself = std::get<master_program_options>(alone).of_job;
  const auto own_conf = own.said.find(conf_option);
  argument_grammar::positional found;
  auto both =
      understood(with_words(arguments, told_itself, from_node,
                            own_conf == own.said.end() ? std::string() : own_conf->second.value),
                 machine, found, from_node);
  if (auto* o = std::get_if<master_program_options>(&both)) {
    o->of_job = told_itself;
    const auto content_of = [&](const char* name) {
      const auto* word = find(told_itself, name) ? nullptr : find(from_node, name);
      return word ? word->content : std::string();
    };
    o->policy.elasticity_content = content_of(elasticity_option);
    o->policy.topology.content = content_of(topology_option);
  }
  return both;
}

} // namespace troupe::launch
