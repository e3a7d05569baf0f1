#pragma once

#include "diag/progress_host.hpp"
#include "tests/sim/host.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

namespace troupe::sim {

/// How far the training processes of a simulation are, as their pages would say it: all ranks make
/// a step every so often, with one all_reduce in it, until one of them stands still in its data
/// loader. Then the others wait for it.
///
/// Only where `every` is set: other simulations have no pages, and their nodes nothing to report.
class progress {
 public:
  explicit progress(world& of) : world_(of) {}

  std::optional<duration> every; ///< a step
  std::uint32_t world_size = 0;

  std::shared_ptr<diag::progress_host> host_of(const host_ptr& launcher);

  void stand_still(global_rank rank);
  void go_on();

 private:
  friend class sim_progress_host;

  /// Times on a page are those of the machine's own clock.
  diag::page_view page_of(const diag::watched_process& p, instant since, const host& on) const;
  diag::process_look look_at(const diag::watched_process& p) const;
  instant now() const { return world_.events.now(); }

  world& world_;
  std::optional<global_rank> still_;
  instant still_since_;
};

} // namespace troupe::sim
