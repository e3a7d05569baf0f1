#include "launch/options/policy.hpp"

#include "launch/options/arguments.hpp"
#include "launch/options/recovery_words.hpp"
#include "launch/options/streams.hpp"
#include "launch/options/values.hpp"

#include <fmt/format.h>

namespace troupe::launch {

/// --node_unit is not among them: it is one of dlrover-run's.
option_group policy_group(policy_arguments& w) {
  return in_full(option_group{
      "Sizes and budgets",
      {{scope::job,
        {"--elasticity-config"},
        "FILE",
        "A DeepSpeed config: only worlds its \"elasticity\" section allows; more nodes stand by",
        into(w.elasticity_config)},
       among({"capped", "uncapped"},
             {scope::job,
              {"--elasticity-variant"},
              "WHICH",
              "Whether a batch may exceed max_train_batch_size: capped, as in DeepSpeed since "
              "August 2026 (default), or uncapped, as before (0.16.5)",
              into(w.elasticity_variant)}),
       {scope::job,
        {"--job-restarts"},
        "N",
        "How many restarts failed workers may cost in all, beside --max-restarts of each node "
        "(any number)",
        into(w.job_restarts)},
       {scope::job,
        {"--node-relaunches"},
        "N",
        "How many nodes may have to be waited for after the first start, when fewer than MIN are "
        "left (any number)",
        into(w.node_relaunches)},
       {scope::job,
        {"--no-progress-limit"},
        "K",
        "End with exit code 3 when K generations in a row failed without progress; as long as "
        "there is progress --max-restarts is unlimited unless given",
        into(w.no_progress_limit)},
       {scope::job,
        {"--progress-after"},
        "SECONDS",
        "A generation that ran for so long has made progress (60)",
        into(w.progress_after)},
       {scope::job,
        {"--undo-worse-scaling"},
        "",
        "Scale back when a larger world does less in a second than a smaller one did (only told)",
        into(w.undo_worse_scaling)},
       {scope::job,
        {"--recover-strategy"},
        "WORD,...",
        "MindCluster's: retry, recover, recover-in-place, dump, exit. Taken and told; it does not "
        "choose yet how the job recovers",
        into(w.recover_strategy)},
       {scope::job,
        {"--hardware-exit-codes"},
        "CODE,...",
        "Exit codes that mean broken hardware (201,202): the node is given up if a world can be "
        "formed without it",
        into(w.hardware_exit_codes)},
       {scope::job,
        {"--hardware-words"},
        "WORD,...",
        "The same for words in a worker's error file or at the end of its log, instead of the "
        "known ones; ,, is a comma",
        into(w.hardware_words)}}});
}

namespace {

result<std::uint32_t> node_unit_of(std::int64_t unit,
                                   const std::pair<std::uint32_t, std::uint32_t>& nodes) {
  const auto [min, max] = nodes;
  if (unit < 1 || max / unit * unit < min)
    return failure(errc::invalid,
                   fmt::format("--node_unit {}: no multiple of it is from {} to {} (--nnodes)",
                               unit, min, max));
  return static_cast<std::uint32_t>(unit);
}

result<std::optional<std::uint32_t>> count_of(const char* option, std::int64_t least,
                                              const std::optional<std::int64_t>& given) {
  if (!given)
    return std::optional<std::uint32_t>{};
  if (*given < least || *given > limits::restarts_max)
    return failure(errc::invalid, fmt::format("{}: {} is not from {} to {}", option, *given, least,
                                              limits::restarts_max));
  return std::optional(static_cast<std::uint32_t>(*given));
}

result<std::vector<std::int32_t>> exit_codes_of(const std::string& text) {
  std::vector<std::int32_t> codes;
  if (stripped(text).empty())
    return codes;
  for (const auto& word : split(text, ',')) {
    const auto code = python_int(word);
    if (!code || *code < 1 || *code > 255)
      return failure(errc::invalid,
                     fmt::format("--hardware-exit-codes: '{}' is no exit code of a failure", word));
    codes.push_back(static_cast<std::int32_t>(*code));
  }
  return codes;
}

/// A blank one would be found in every log, and each failure be the hardware's.
result<std::vector<std::string>> words_to_find(const std::string& text) {
  std::vector<std::string> words;
  if (stripped(text).empty())
    return words;
  for (const auto& given : parse_words(text)) {
    words.push_back(stripped(given));
    if (words.back().empty())
      return failure(errc::invalid, fmt::format("--hardware-words: '{}' has a blank word", text));
  }
  return words;
}

} // namespace

result<job_policy> derive_policy(const policy_arguments& w,
                                 const std::pair<std::uint32_t, std::uint32_t>& nodes,
                                 const std::map<std::string, std::string>& environment) {
  job_policy p;
  const auto unit = node_unit_of(w.node_unit, nodes);
  if (!unit)
    return tl::make_unexpected(unit.error());
  p.node_unit = *unit;
  p.save_at_breakpoint = w.save_at_breakpoint;
  p.undo_worse_scaling = w.undo_worse_scaling;
  if (const auto good = check_recover_strategy(w.recover_strategy); !good)
    return tl::make_unexpected(good.error());
  p.recover_strategy = w.recover_strategy;
  p.elasticity_config = w.elasticity_config;
  p.elasticity_capped = w.elasticity_variant == "capped";
  const auto restarts = count_of("--job-restarts", 0, w.job_restarts);
  if (!restarts)
    return tl::make_unexpected(restarts.error());
  p.job_restarts = *restarts;
  const auto relaunches = count_of("--node-relaunches", 0, w.node_relaunches);
  if (!relaunches)
    return tl::make_unexpected(relaunches.error());
  p.node_relaunches = *relaunches;
  const auto fruitless = count_of("--no-progress-limit", 1, w.no_progress_limit);
  if (!fruitless)
    return tl::make_unexpected(fruitless.error());
  p.no_progress_limit = *fruitless;
  constexpr double seconds_max = 1e6;
  if (!(w.progress_after >= 0 && w.progress_after <= seconds_max))
    return failure(errc::invalid, fmt::format("--progress-after: {} is not from 0 to {} seconds",
                                              w.progress_after, seconds_max));
  p.progress_after =
      std::chrono::duration_cast<duration>(std::chrono::duration<double>(w.progress_after));
  if (w.hardware_exit_codes) {
    const auto codes = exit_codes_of(*w.hardware_exit_codes);
    if (!codes)
      return tl::make_unexpected(codes.error());
    p.hardware_exit_codes = *codes;
  }
  if (w.hardware_words) {
    const auto words = words_to_find(*w.hardware_words);
    if (!words)
      return tl::make_unexpected(words.error());
    p.hardware_words = *words;
  }
  const auto topology = derive_topology(w.topology);
  if (!topology)
    return tl::make_unexpected(topology.error());
  p.topology = *topology;
  const auto planned = derive_planned_end(w.planned_end, environment);
  if (!planned)
    return tl::make_unexpected(planned.error());
  p.planned_end = *planned;
  return p;
}

} // namespace troupe::launch
