#include "launch/options/node_check.hpp"

#include "launch/options/arguments.hpp"

#include <fmt/format.h>

namespace troupe::launch {

namespace {

constexpr double check_seconds_min = 1, check_seconds_max = 3'600;
constexpr double factor_min = 1.1, factor_max = 1'000;
constexpr std::int64_t bandwidth_max = 100'000'000, channels_max = 1'024;

} // namespace

option_group node_check_group(node_check_arguments& w) {
  return in_full(option_group{
      "The check before the start",
      {among({"0", "1", "2"},
             {scope::job,
              {"--precheck"},
              "LEVEL",
              "0: none (default); 1: as --network-check; 2: as that and --comm-perf-test",
              into(w.precheck)}),
       {scope::job,
        {"--network-check"},
        "",
        "Nodes are probed before they may take part, devices and network; a broken one leaves, and "
        "the job starts when MIN nodes are good",
        into(w.network_check)},
       {scope::job,
        {"--comm-perf-test"},
        "",
        "After the check, measure all-reduce and all-gather among all nodes, by size of message",
        into(w.comm_perf_test)},
       {scope::job,
        {"--exclude-straggler"},
        "",
        "A slow node leaves, too",
        into(w.exclude_straggler)},
       {scope::job,
        {"--straggler-factor"},
        "X",
        "A node is slow if it takes more than X times the median of all nodes (2)",
        into(w.straggler_factor)},
       {scope::job,
        {"--network-check-timeout"},
        "SECONDS",
        "How long each probe may take (30); a node that does not answer counts as broken",
        into(w.timeout)},
       {scope::job,
        {"--switchbox-check"},
        "",
        "With the check, look at the switches between devices of a node as well",
        into(w.switchbox_check)},
       several(is_box_pair, {scope::job,
                             {"--box-pairs"},
                             "PAIRS",
                             "Which devices are connected by one (0:1 2:4 3:5 6:7)",
                             into(w.box_pairs)}),
       {scope::job,
        {"--min-bandwidth"},
        "MB/S",
        "What a copy between the two devices of a pair must reach (10000)",
        into(w.min_bandwidth)},
       {scope::job,
        {"--min-channels"},
        "N",
        "How many links must be up between them (2)",
        into(w.min_channels)}}});
}

std::vector<std::pair<std::string, std::string>>
parts_of_no_check(const std::map<std::string, argument_grammar::given>& said,
                  const node_check_options& o) {
  std::vector<std::pair<std::string, std::string>> unheard;
  const auto need = [&](const char* needed, std::initializer_list<const char*> parts) {
    for (const auto* part : parts)
      if (said.count(part) != 0)
        unheard.emplace_back(part, needed);
  };
  if (!o.wanted)
    need("--network-check",
         {"--exclude-straggler", "--straggler-factor", "--network-check-timeout"});
  if (o.box_pairs.empty())
    need("--switchbox-check", {"--box-pairs", "--min-bandwidth", "--min-channels"});
  return unheard;
}

result<node_check_options> derive_node_check(const node_check_arguments& w) {
  node_check_options o;
  o.wanted = w.network_check || w.precheck != "0";
  if (!o.wanted && (w.comm_perf_test || w.switchbox_check))
    return failure(errc::invalid,
                   fmt::format("{} is a part of the check: give --network-check",
                               w.comm_perf_test ? "--comm-perf-test" : "--switchbox-check"));
  o.measures_bandwidth = w.comm_perf_test || w.precheck == "2";
  o.excludes_stragglers = w.exclude_straggler;
  if (!(w.straggler_factor >= factor_min && w.straggler_factor <= factor_max))
    return failure(errc::invalid, fmt::format("--straggler-factor: {} is not from {} to {}",
                                              w.straggler_factor, factor_min, factor_max));
  o.straggler_factor = w.straggler_factor;
  if (!(w.timeout >= check_seconds_min && w.timeout <= check_seconds_max))
    return failure(errc::invalid,
                   fmt::format("--network-check-timeout: {} is not from {} to {} seconds",
                               w.timeout, check_seconds_min, check_seconds_max));
  o.within = std::chrono::duration_cast<duration>(std::chrono::duration<double>(w.timeout));
  if (w.min_bandwidth < 0 || w.min_bandwidth > bandwidth_max)
    return failure(errc::invalid, fmt::format("--min-bandwidth: {} is not from 0 to {} MB/s",
                                              w.min_bandwidth, bandwidth_max));
  o.min_bandwidth = static_cast<std::uint64_t>(w.min_bandwidth);
  if (w.min_channels < 0 || w.min_channels > channels_max)
    return failure(errc::invalid, fmt::format("--min-channels: {} is not from 0 to {}",
                                              w.min_channels, channels_max));
  o.min_channels = static_cast<std::uint32_t>(w.min_channels);
  const auto pairs = box_pairs_of(w.box_pairs);
  if (!pairs)
    return tl::make_unexpected(pairs.error());
  if (w.switchbox_check)
    o.box_pairs = *pairs;
  return o;
}

} // namespace troupe::launch
