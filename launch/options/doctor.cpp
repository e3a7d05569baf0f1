#include "launch/options/arguments.hpp"

/// What `actor-launcher doctor` can be told: the launcher's options, and a few of its own.
namespace troupe::launch {

parsed<doctor_options> parse_doctor(const std::vector<std::string>& arguments,
                                    const machine_facts& machine) {
  doctor_options o;
  argument_grammar d(
      "actor-launcher doctor", "[options] [script [arguments of the script]]",
      "Says what this machine lacks for the job that actor-launcher would start with the same "
      "words, what that costs, and what to do. Starts no job. Ends with 0: nothing would stop the "
      "job; 1: something would; 2: the command line is wrong.");
  d.add(in_full(option_group{
      "The doctor's own",
      {typed_only({scope::process,
                   {"--json"},
                   "",
                   "One JSON object a line, one for each finding",
                   into(o.json)}),
       typed_only({scope::process,
                   {"--checkpoints"},
                   "DIR",
                   "Where the script saves checkpoints: look at that directory as well",
                   into(o.checkpoints)})}}));
  d.most_used({"--json", "--checkpoints", "--nnodes", "--nproc-per-node", "--rdzv-endpoint",
               "--python", "--no-python", "--log-dir", "--token-file", "--certificate", "--quiet",
               "--help", "--help-all", "--version"});
  auto job = read_launcher(d, arguments, machine, script::optional);
  if (auto* text = std::get_if<just_print>(&job))
    return std::move(*text);
  if (auto* wrong = std::get_if<refusal>(&job))
    return std::move(*wrong);
  o.job = std::get<launcher_options>(std::move(job));
  if (o.job.new_token)
    return refusal{"--new-token makes a file, and doctor changes nothing: leave one of them out"};
  return o;
}

} // namespace troupe::launch
