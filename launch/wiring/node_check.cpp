#include "launch/wiring/node_check.hpp"

namespace troupe::launch {

namespace {

/// From what latency decides to what bandwidth decides.
constexpr std::uint64_t perf_test_sizes[] = {4u << 10, 64u << 10, 1u << 20, 8u << 20, 64u << 20};

} // namespace

void apply_node_check(const node_check_options& o, actors::master_options& m) {
  m.recovery.checks_nodes = o.wanted;
  m.recovery.check_within = limits::check_steps_max * (o.within + limits::check_on_the_way);
  auto& check = m.network_check;
  check.policy.straggler_factor = o.straggler_factor;
  check.policy.exclude_straggler = o.excludes_stragglers;
  check.within = o.within;
  if (o.measures_bandwidth)
    check.perf_test_sizes.assign(std::begin(perf_test_sizes), std::end(perf_test_sizes));
  for (const auto& [first, second] : o.box_pairs)
    check.box_pairs.push_back({first, second});
  check.box_bandwidth_min = o.min_bandwidth;
  check.box_channels_min = o.min_channels;
}

} // namespace troupe::launch
