#include "launch/options/arguments.hpp"
#include "launch/options/values.hpp"
#include "probe/limits.hpp"

#include <fmt/format.h>

/// troupe-probe's command line. A node supervisor types it as well, so it takes nothing from the
/// environment.
namespace troupe::launch {

namespace {

struct probe_arguments {
  bool box = false;
  std::optional<std::string> pairs;
  std::optional<std::int64_t> bandwidth, channels;
  double within = 60;
};

option_group box_group(probe_arguments& w) {
  return {"Switches between devices",
          {typed_only({scope::process,
                       {"--switchbox-check"},
                       "",
                       "Look at pairs of devices and the switch between them as well; each option "
                       "below asks for it too",
                       into(w.box)}),
           typed_only(several(is_box_pair, {scope::process,
                                            {"--box-pairs"},
                                            "PAIRS",
                                            "Which pairs (0:1 2:4 3:5 6:7)",
                                            into(w.pairs)})),
           typed_only({scope::process,
                       {"--min-bandwidth"},
                       "MB/S",
                       "What copies between them must make, both ways (10000)",
                       into(w.bandwidth)}),
           typed_only({scope::process,
                       {"--min-channels"},
                       "N",
                       "So many links between them must be up (2)",
                       into(w.channels)})}};
}

option_group output_group(probe_program_options& o, probe_arguments& w) {
  return {
      "What is done with it",
      {typed_only(
           {scope::process, {"--json"}, "", "One JSON object instead of a table", into(o.json)}),
       typed_only({scope::process,
                   {"--within"},
                   "SECONDS",
                   "End after this, whatever a driver holds up (60)",
                   into(w.within)}),
       typed_only({scope::process,
                   {"--messages"},
                   "",
                   "For a node supervisor: NodeProbeWanted on the standard input, NodeProbed "
                   "on the standard output",
                   into(o.as_messages)})}};
}

std::optional<std::string> outside(const char* name, std::int64_t value, std::int64_t most) {
  if (value >= 0 && value <= most)
    return std::nullopt;
  return fmt::format("{}: {}; 0 to {} are possible", name, value, most);
}

std::optional<std::string> derive(probe_program_options& o, const probe_arguments& w) {
  constexpr std::int64_t most_bandwidth = 1'000'000'000, most_channels = 1'024;
  constexpr double most_seconds = 3'600;
  if (!(w.within > 0 && w.within <= most_seconds))
    return fmt::format("--within: {}; more than 0 and at most {} seconds are possible", w.within,
                       most_seconds);
  o.within = std::chrono::milliseconds(
      std::max<std::int64_t>(static_cast<std::int64_t>(w.within * 1'000), 1));
  const auto bandwidth = w.bandwidth.value_or(static_cast<std::int64_t>(limits::box_bandwidth_min));
  const auto channels = w.channels.value_or(std::int64_t{limits::box_channels_min});
  for (const auto& wrong : {outside("--min-bandwidth", bandwidth, most_bandwidth),
                            outside("--min-channels", channels, most_channels)})
    if (wrong)
      return wrong;
  if (!w.box && !w.pairs && !w.bandwidth && !w.channels)
    return std::nullopt;
  auto pairs = box_pairs_of(w.pairs.value_or(box_pairs_by_default));
  if (!pairs)
    return pairs.error().what;
  o.box = probe_program_options::box_check{std::move(*pairs), static_cast<std::uint64_t>(bandwidth),
                                           static_cast<std::uint32_t>(channels)};
  return std::nullopt;
}

} // namespace

parsed<probe_program_options> parse_probe(const std::vector<std::string>& arguments,
                                          const machine_facts& machine) {
  probe_program_options o;
  probe_arguments w;
  argument_grammar d(
      "troupe-probe", "[options]",
      "Finds out how this node is by itself, as each node of a job does with --network-check: its "
      "devices, their memory and health, and products of matrices, whose results are compared with "
      "what they must be. Takes the devices that training would use: CUDA_VISIBLE_DEVICES counts. "
      "Ends with 0: the node works; 1: it fails; 2: the command line is wrong.");
  d.add(output_group(o, w));
  d.add(box_group(w));
  declare_answers(d, machine.columns);
  auto said = d.parse(arguments, {});
  if (auto* text = std::get_if<just_print>(&said))
    return *text;
  if (auto* wrong = std::get_if<refusal>(&said))
    return *wrong;
  const auto& rest = std::get<argument_grammar::positional>(said).rest;
  if (!rest.empty())
    return refusal{fmt::format("'{}' is no option of troupe-probe (see --help)", rest.front())};
  if (auto wrong = derive(o, w))
    return refusal{*wrong};
  return o;
}

} // namespace troupe::launch
