#include "launch/options/arguments.hpp"
#include "launch/options/scheduler_environment.hpp"
#include "launch/options/values.hpp"

#include <fmt/format.h>

#include <cmath>

/// actor-shell's command line: options may stand before and behind what is to be looked at.
namespace troupe::launch {

namespace {

constexpr double watch_default = 2, watch_min = 0.1, watch_max = 3'600;

struct shell_arguments {
  std::string endpoint;
  bool watch = false;
  double every = watch_default;
  std::optional<std::int64_t> depth;
};

option_group rows_group(shell_options& o, shell_arguments& w) {
  return {
      "Which rows, and how",
      {typed_only({scope::process,
                   {"--node"},
                   "NAME",
                   "Only the rows of this node; no other node is asked",
                   into(o.node)}),
       typed_only(
           {scope::process, {"--depth"}, "N", "Only N levels below the master", into(w.depth)}),
       typed_only(
           {scope::process,
            {"--troubled"},
            "",
            "Only rows with trouble (failed, silent, just restarted, budget used up), and those "
            "above them",
            into(o.troubled)}),
       typed_only({scope::process,
                   {"--json"},
                   "",
                   "One JSON document, see docs/actor-shell.md",
                   into(o.json)}),
       typed_only(
           {scope::process,
            {"--watch"},
            "",
            "[SECONDS] Ask again, every 2 seconds or as many as said, until Ctrl-C; with --json "
            "one document a line",
            into(w.watch)})}};
}

option_group stacks_group(shell_options& o) {
  return {"Stacks",
          {typed_only({scope::process,
                       {"--text"},
                       "",
                       "Show the Python stacks here as well, merged, with the ranks that are there",
                       into(o.text)})}};
}

option_group settings_group(shell_options& o) {
  return {"Settings",
          {typed_only({scope::process,
                       {"--file"},
                       "FILE",
                       "The file that is set, instead of the one of this user's only job with "
                       "workers on this machine and --auto_tunning",
                       into(o.settings_file)})}};
}

/// A flag's value may be joined to it: --watch=5.
std::vector<std::string> separated(const std::vector<std::string>& arguments) {
  constexpr std::string_view joined = "--watch=";
  std::vector<std::string> out;
  for (const auto& word : arguments) {
    if (word.compare(0, joined.size(), joined) != 0) {
      out.push_back(word);
      continue;
    }
    out.emplace_back("--watch");
    out.push_back(word.substr(joined.size()));
  }
  return out;
}

struct positional {
  std::string what;    ///< one of `verbs`
  std::string operand; ///< of "scale" and "set"
  bool interval = false;
};

constexpr auto verbs = "tree, ps, stacks, scale MIN:MAX, set batch-size=N";

/// Takes the first word that is no option; what is wrong with it otherwise.
std::optional<std::string> take_word(const std::string& word, positional& have,
                                     shell_arguments& w) {
  const auto number = python_float(word);
  if (w.watch && number && !have.interval) {
    have.interval = true;
    w.every = *number;
    if (std::isfinite(w.every) && w.every >= watch_min && w.every <= watch_max)
      return std::nullopt;
    return fmt::format("--watch: {} seconds; {} to {} are possible", word, watch_min, watch_max);
  }
  if ((have.what == "scale" || have.what == "set") && have.operand.empty()) {
    have.operand = word;
    return std::nullopt;
  }
  const bool known =
      word == "tree" || word == "ps" || word == "stacks" || word == "scale" || word == "set";
  if (!known || !have.what.empty())
    return fmt::format("'{}' is not known; there are: {} (see --help)", word, verbs);
  have.what = word;
  return std::nullopt;
}

constexpr std::int64_t batch_size_most = 1 << 20;

std::optional<refusal> take_setting(const std::string& word, shell_options& o) {
  constexpr std::string_view size = "batch-size=", same = "batch_size=";
  const bool known =
      word.compare(0, size.size(), size) == 0 || word.compare(0, same.size(), same) == 0;
  if (!known)
    return refusal{fmt::format("set what? There is: batch-size=N{}",
                               word.empty() ? "" : fmt::format(", and not '{}'", word))};
  const auto number = python_int(word.substr(size.size()));
  if (!number || *number < 1 || *number > batch_size_most)
    return refusal{fmt::format("set {}: 1 to {} are possible", word, batch_size_most)};
  o.batch_size = static_cast<std::uint32_t>(*number);
  return std::nullopt;
}

std::optional<parsed<shell_options>> read(const argument_grammar& d,
                                          std::vector<std::string> arguments,
                                          const machine_facts& machine, shell_options& o,
                                          shell_arguments& w) {
  positional have;
  auto environment = machine.environment;
  while (true) {
    auto said = d.parse(arguments, environment);
    if (auto* text = std::get_if<just_print>(&said))
      return *text;
    if (auto* wrong = std::get_if<refusal>(&said))
      return *wrong;
    arguments = std::move(std::get<argument_grammar::positional>(said).rest);
    if (arguments.empty())
      break;
    if (auto wrong = take_word(arguments.front(), have, w))
      return refusal{*wrong};
    arguments.erase(arguments.begin());
    environment.clear(); // it gave its defaults before the first word
  }
  if (have.what.empty())
    return refusal{fmt::format("what to do? There are: {} (see --help)", verbs)};
  o.lists_jobs = have.what == "ps";
  o.stacks = have.what == "stacks";
  if (have.what == "set") {
    if (auto wrong = take_setting(have.operand, o))
      return *wrong;
    return std::nullopt;
  }
  if (have.what != "scale")
    return std::nullopt;
  const auto sizes = parse_nodes(have.operand);
  if (!sizes)
    return refusal{"scale to how many nodes? N, or MIN:MAX" +
                   (have.operand.empty() ? "" : " (" + sizes.error().what + ")")};
  o.scale = shell_options::sizes{sizes->first, sizes->second};
  return std::nullopt;
}

/// Stacks are of all ranks, once; and scaling shows nothing.
std::optional<std::string> once_validation_error(const shell_options& o, const shell_arguments& w) {
  if (o.text && !o.stacks)
    return "--text is for stacks";
  if (o.text && o.json)
    return "--text or --json: the document has all that the lines say";
  const bool sets = o.batch_size.has_value();
  if (!o.settings_file.empty() && !sets)
    return "--file is for set";
  if (!o.stacks && !o.scale && !sets)
    return std::nullopt;
  if ((o.scale || sets) && o.json)
    return "--json is for tree, ps and stacks";
  for (const auto& [given, option] :
       {std::pair(w.watch, "--watch"), std::pair(w.depth.has_value(), "--depth"),
        std::pair(o.troubled, "--troubled"), std::pair(!o.node.empty(), "--node")})
    if (given)
      return o.stacks ? fmt::format("{} is for tree; stacks shows all ranks, once", option)
                      : fmt::format("{} is for tree", option);
  return std::nullopt;
}

} // namespace

parsed<shell_options> parse_shell(const std::vector<std::string>& arguments,
                                  const machine_facts& machine) {
  shell_options o;
  shell_arguments w;
  argument_grammar d(
      "actor-shell", "[options] tree|ps|stacks|scale MIN:MAX|set NAME=N [options]",
      "Looks at running jobs, and changes them. tree: each actor of a job's master and of its "
      "nodes "
      "down to the "
      "training processes, its state, uptime and what it does; restarts used and allowed; "
      "how and why it ended. ps: the jobs of this user whose master is on this machine. stacks: "
      "what all ranks are doing at this moment, as pictures on the machine of the master. scale "
      "MIN:MAX: worlds of so many nodes from now on, instead of --nnodes. set batch-size=N: "
      "the data loaders of a job with --auto_tunning take it, by a file on this machine; no master "
      "is asked. Ends with 0: shown, or "
      "taken; 1: the master could not be asked, or refused; 2: the command line is wrong, or it is "
      "not clear which job is meant.");
  d.add({"The job",
         {{scope::process,
           {"--master"},
           "HOST:PORT",
           "The job's master (TROUPE_MASTER_ADDR); else the only one of this user on this machine",
           into(w.endpoint)}}});
  d.add(rows_group(o, w));
  d.add(stacks_group(o));
  d.add(settings_group(o));
  declare_common(d, o.common);
  declare_answers(d, machine.columns);
  if (auto over = read(d, separated(arguments), machine, o, w))
    return *over;
  if (const auto wrong = once_validation_error(o, w))
    return refusal{*wrong};
  if (o.batch_size && !w.endpoint.empty())
    return refusal{"--master is not for set, which writes a file on this machine (--file)"};
  if (w.endpoint.empty() && !o.batch_size) {
    const auto around = find_scheduler_environment(machine.environment, machine.host);
    if (!around)
      return refusal{around.error().what};
    if (around->named)
      w.endpoint = ports::to_string(*around->master);
  }
  if (!w.endpoint.empty()) {
    const auto where = parse_endpoint(w.endpoint, rendezvous_port);
    if (!where)
      return refusal{"--master: " + where.error().what};
    o.master = *where;
  }
  if (w.depth && (*w.depth < 0 || *w.depth > limits::nesting_max))
    return refusal{
        fmt::format("--depth: {} levels; 0 to {} are possible", *w.depth, limits::nesting_max)};
  if (w.depth)
    o.depth = static_cast<unsigned>(*w.depth);
  if (w.watch)
    o.watch = std::chrono::duration_cast<duration>(std::chrono::duration<double>(w.every));
  if (auto wrong = derive_common(o.common, machine))
    return refusal{wrong->what};
  return o;
}

} // namespace troupe::launch
