#include "launch/options/arguments.hpp"

#include <fmt/format.h>

namespace troupe::launch {

void declare_troupe(argument_grammar& d, launcher_options& o, std::optional<std::string>& python) {
  d.add(in_full(option_group{
      "Of our own",
      {{scope::worker,
        {"--python"},
        "FILE",
        "What runs the script (PYTHON_EXEC, else the Python of the environment that this program "
        "is installed in, else of the active one, else the first python3 on PATH)",
        into(python)},
       {scope::process,
        {"--propagate-exit-code"},
        "",
        "Exit with the code of the worker that failed first (128 + N for signal N) instead of 1",
        into(o.propagate_exit_code)},
       {scope::worker,
        {"--local-rank-argument"},
        "",
        "Give each worker --local-rank=N as its first argument, as torch.distributed.launch does",
        into(o.local_rank_argument)},
       {scope::worker,
        {"--trace"},
        "",
        "Time the workers' calls of CUDA, NCCL and cuBLAS; the figures are in the run's directory",
        into(o.trace)},
       {scope::node, {"--node-name"}, "NAME", "This node's name within the job", into(o.node_name)},
       {scope::master,
        {"--journal"},
        "FILE",
        "Where the master of this node keeps its decisions (configmap:NAME: as with actor-master)",
        into(o.journal)},
       {scope::node,
        {"--copy-rate"},
        "MIB/S",
        "How fast this node sends to other nodes at most, on the links that carry copies of its "
        "images (troupe.checkpoint) and newcomers' checks of the network (512); 0: no bound",
        into(o.copy_rate_said)},
       {scope::node,
        {"--master-away-timeout"},
        "SECONDS",
        "How long this node trains on without a link to its master before it gives up (1800); with "
        "nothing running it waits for read_timeout (--rdzv-conf)",
        into(o.master_away_said)},
       typed_only({scope::process,
                   {"--new-token"},
                   "",
                   "Make a token file for this user's jobs on several machines, say what to do "
                   "with it, and exit",
                   into(o.new_token)}),
       {scope::process,
        {"--outcome-file"},
        "FILE",
        "Write how the job ended to this file, as JSON, instead of printing the summary",
        into(o.outcome_file)}}}));
}

std::optional<error> derive_interpreter(launcher_options& o,
                                        const std::optional<std::string>& given,
                                        const machine_facts& machine) {
  if (given && given->empty())
    return error{errc::invalid, "--python: which one? It is empty"};
  o.python = choose_interpreter(given.value_or(""), machine.environment, machine.pythons);
  return std::nullopt;
}

std::optional<error> derive_copy_rate(launcher_options& o) {
  constexpr std::int64_t most = 1 << 20;
  if (!o.copy_rate_said)
    return std::nullopt;
  if (*o.copy_rate_said < 0 || *o.copy_rate_said > most)
    return error{errc::invalid,
                 fmt::format("--copy-rate: {} is not from 0 to {}", *o.copy_rate_said, most)};
  o.copy_rate = static_cast<std::uint64_t>(*o.copy_rate_said) << 20;
  return std::nullopt;
}

std::optional<error> derive_master_away(launcher_options& o) {
  constexpr std::int64_t most = 7 * 86'400;
  if (!o.master_away_said)
    return std::nullopt;
  if (*o.master_away_said < 0 || *o.master_away_said > most)
    return error{errc::invalid, fmt::format("--master-away-timeout: {} seconds; 0 to {} are "
                                            "possible",
                                            *o.master_away_said, most)};
  o.master_away_timeout = std::chrono::seconds(*o.master_away_said);
  return std::nullopt;
}

namespace {

std::vector<option> talk_options(common_options& c) {
  const auto verbosity = [&c](os::verbosity v) {
    return [&c, v](const std::string&) {
      c.talk = v;
      return std::nullopt;
    };
  };
  return {{scope::process,
           {"-q", "--quiet"},
           "",
           "Only warnings and errors",
           verbosity(os::verbosity::quiet)},
          {scope::process,
           {"-v", "--verbose"},
           "",
           "Also what a closer look wants",
           verbosity(os::verbosity::verbose)},
          {scope::process,
           {"--json-log"},
           "FILE",
           "Write every event as a line of JSON to this file",
           into(c.json_log)}};
}

} // namespace

void declare_talk(argument_grammar& d, common_options& c) {
  d.add(in_full(option_group{"What it tells", talk_options(c)}));
}

void declare_common(argument_grammar& d, common_options& c) {
  option_group group{
      "What it tells, and whom it trusts",
      {{scope::process,
        {"--certificate"},
        "FILE",
        "This process's TLS certificate (PEM)",
        into(c.certificate)},
       {scope::process, {"--key"}, "FILE", "Its private key (PEM)", into(c.key)},
       {scope::process,
        {"--authority"},
        "FILE",
        "The certificate authority peers must be signed by (PEM)",
        into(c.authority)},
       {scope::process,
        {"--crl"},
        "FILE",
        "The authority's list of revoked certificates (PEM); read again when it changes",
        into(c.revoked)},
       typed_only(
           {scope::process,
            {"--token-file"},
            "FILE",
            "The job's token, instead of certificates (TROUPE_TOKEN_FILE, or itself in "
            "TROUPE_TOKEN, else ~/.config/troupe/token where other machines are to be reached). "
            "With none of them, one is made that serves this machine only",
            into(c.token_file)})}};
  auto talk = talk_options(c);
  group.options.insert(group.options.begin(), talk.begin(), talk.end());
  d.add(in_full(group));
}

std::optional<error> derive_common(common_options& c, const machine_facts& machine) {
  const int given = !c.certificate.empty() + !c.key.empty() + !c.authority.empty();
  if (given != 0 && given != 3)
    return error{errc::invalid,
                 "--certificate, --key and --authority belong together: give all three or none"};
  if (given == 0 && !c.revoked.empty())
    return error{errc::invalid, "--crl revokes certificates: it needs --certificate, --key and "
                                "--authority"};
  if (given != 0 && !c.token_file.empty())
    return error{errc::invalid, "--token-file and --certificate exclude each other: a job proves "
                                "itself by a token or by certificates"};
  if (given != 0 || !c.token_file.empty())
    return std::nullopt;
  const auto variable = [&machine](const char* name) {
    const auto found = machine.environment.find(name);
    return found == machine.environment.end() ? std::string() : found->second;
  };
  c.token_file = variable(token_file_variable);
  c.token = variable(token_variable);
  if (!c.token_file.empty() && !c.token.empty())
    return error{errc::invalid,
                 "TROUPE_TOKEN_FILE and TROUPE_TOKEN are both set: leave one of them out"};
  return std::nullopt;
}

} // namespace troupe::launch
