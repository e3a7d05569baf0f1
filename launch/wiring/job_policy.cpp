#include "launch/wiring/job_policy.hpp"

#include "launch/wiring/elasticity_file.hpp"

#include <fmt/format.h>

namespace troupe::launch {

result<void> apply_policy(const job_policy& p, std::optional<std::uint32_t> slots,
                          actors::master_options& m) {
  using variant = actors::elasticity_config::variant;
  auto& sizes = m.rendezvous;
  sizes.unit = p.node_unit;
  sizes.relaunches_max = p.node_relaunches;
  m.recovery.job_restarts = p.job_restarts;
  m.recovery.without_progress_max = p.no_progress_limit;
  m.recovery.progress_after = p.progress_after;
  m.diagnosis.policy.undoes_worse_scaling = p.undo_worse_scaling;
  if (p.hardware_exit_codes)
    m.recovery.hardware.exit_codes = *p.hardware_exit_codes;
  if (p.hardware_words)
    m.recovery.hardware.words = *p.hardware_words;
  sizes.topology.file = !p.topology.file.empty();
  sizes.topology.wait = p.topology.wait;
  sizes.topology.worse_by = p.topology.worse_by;
  if (p.planned_end.asks)
    sizes.planned_end =
        actors::planned_end_options{p.planned_end.begin_within, p.planned_end.within};
  if (p.elasticity_config.empty())
    return {};
  const auto which = p.elasticity_capped ? variant::capped : variant::uncapped;
  auto elastic = p.elasticity_content.empty() ? load_elasticity(p.elasticity_config, which)
                                              : read_elasticity(p.elasticity_content, which);
  if (!elastic)
    return tl::make_unexpected(elastic.error());
  sizes.elastic = std::move(*elastic);
  if (slots && sizes.most(*slots) == 0)
    return failure(errc::invalid,
                   fmt::format("--elasticity-config {}: it allows no world of {} to {} nodes with "
                               "{} worker(s) each",
                               p.elasticity_config, sizes.nodes_min, sizes.nodes_max, *slots));
  return {};
}

} // namespace troupe::launch
