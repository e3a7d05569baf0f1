#pragma once

#include "actors/limits.hpp"
#include "runtime/base/rare.hpp"
#include "runtime/base/time.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace troupe::actors {

struct growth_options {
  /// A running job takes newcomers in when no node has come for `quiet`, after `most` at the
  /// latest.
  duration quiet = limits::grow_quiet;
  duration most = limits::grow_most;
  /// A generation that lasts less is short. From the third short one in a row on newcomers wait
  /// twice as long each time, `back_off_most` at the longest.
  duration short_lived = limits::grow_short_lived;
  duration back_off_most = limits::grow_back_off_most;
};

/// When a running world may be interrupted to become larger. Each time costs all workers a restart,
/// so nodes that come together are taken together, and nodes that come and go are taken ever more
/// rarely. Pure.
/// The first newcomer starts the wait and the last one ends it. Without a bound on the first one's
/// wait, nodes that keep coming would keep all of them out.
class growth {
 public:
  explicit growth(growth_options options) : options_(options) {}

  void generation_begins(instant now) { began_ = now; }
  void generation_ends(instant now) {
    if (began_)
      short_in_a_row_ = now - *began_ < options_.short_lived ? short_in_a_row_ + 1 : 0;
    began_.reset();
  }

  // Also while no generation runs: one that comes as a world is formed is taken right after.
  void newcomer(instant now) {
    if (!first_)
      first_ = now;
    last_ = now;
  }
  /// It has been dealt with; until the next newcomer.
  void settled() { first_.reset(); }

  /// When to deal with the newcomers; nothing without newcomers, or while no generation runs.
  std::optional<instant> due() const {
    if (!first_ || !began_)
      return std::nullopt;
    // Under back-off later newcomers do not prolong the wait, and the generation has had that time
    // to work: else a node that comes and goes would stop the job each time it comes.
    const auto wait = back_off();
    TROUPE_RARE_IF(wait > options_.quiet, "planner: newcomers wait longer after short generations");
    if (wait > options_.quiet)
      return std::max(*began_, *first_) + wait;
    return std::min(last_ + options_.quiet, *first_ + options_.most);
  }

  duration back_off() const {
    // Two short generations in a row may be a slow start of the job. The bound of doublings only
    // keeps the shift in range.
    constexpr std::uint32_t patience = 2, doublings_max = 20;
    if (short_in_a_row_ <= patience)
      return options_.quiet;
    return std::min<duration>(options_.quiet *
                                  (1 << std::min(short_in_a_row_ - patience, doublings_max)),
                              options_.back_off_most);
  }

 private:
  growth_options options_;
  std::optional<instant> began_; ///< the running generation
  std::optional<instant> first_; ///< the first of the newcomers that wait
  instant last_{};
  std::uint32_t short_in_a_row_ = 0;
};

} // namespace troupe::actors
