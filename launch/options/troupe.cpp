#include "launch/options/words.hpp"

namespace troupe::launch {

void declare_troupe(dialect& d, launcher_options& o) {
  d.add(in_full(option_group{
      "Of our own",
      {{{"--propagate-exit-code"},
        "",
        "Exit with the code of the worker that failed first (128 + N for signal N) instead of 1",
        into(o.propagate_exit_code)},
       {{"--local-rank-argument"},
        "",
        "Give each worker --local-rank=N as its first argument, as torch.distributed.launch does",
        into(o.local_rank_argument)},
       {{"--node-name"}, "NAME", "This node's name within the job", into(o.node_name)},
       {{"--journal"},
        "FILE",
        "Where the master of this node keeps its decisions",
        into(o.journal)},
       {{"--outcome-file"},
        "FILE",
        "Write how the job ended to this file, as JSON, instead of printing the summary",
        into(o.outcome_file)}}}));
}

void declare_common(dialect& d, common_options& c) {
  const auto verbosity = [&c](os::verbosity v) {
    return [&c, v](const std::string&) {
      c.talk = v;
      return std::nullopt;
    };
  };
  d.add(in_full(option_group{
      "What it tells, and whom it trusts",
      {{{"-q", "--quiet"}, "", "Only warnings and errors", verbosity(os::verbosity::quiet)},
       {{"-v", "--verbose"},
        "",
        "Also what a closer look wants",
        verbosity(os::verbosity::verbose)},
       {{"--json-log"},
        "FILE",
        "Write every event as a line of JSON to this file",
        into(c.json_log)},
       {{"--certificate"}, "FILE", "This process's TLS certificate (PEM)", into(c.certificate)},
       {{"--key"}, "FILE", "Its private key (PEM)", into(c.key)},
       {{"--authority"},
        "FILE",
        "The certificate authority peers must be signed by (PEM)",
        into(c.authority)}}}));
}

std::optional<error> objection_to_common(const common_options& c) {
  const int given = !c.certificate.empty() + !c.key.empty() + !c.authority.empty();
  if (given != 0 && given != 3)
    return error{errc::invalid,
                 "--certificate, --key and --authority belong together: give all three or none"};
  return std::nullopt;
}

} // namespace troupe::launch
