// How recovery_core takes other sizes while the job runs (actor-shell scale).
//
// The sizes are on record before anything follows from them, so that a later master goes by them
// and not by its options. A generation that is too large then is ended by a plan; one that is too
// small by the new MIN trains on, since a stop would gain nothing: MIN says when a world may start.

#include "actors/master/recovery/recovery_core.hpp"
#include "actors/words.hpp"
#include "runtime/base/limits.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

using namespace messages;

recovery_core::effects recovery_core::scale_wanted(instant now, std::uint64_t number,
                                                   const msg<ScaleRequest>& m) {
  effects out;
  const auto say = [&](bool accepted, const std::string& text) {
    out.push_back(reply{number, author_.write<ScaleReport>(current_, [&](auto b) {
                          b.setAccepted(accepted);
                          b.setText(text);
                        })});
  };
  const std::string plan = m.read()->getPlan().cStr();
  if (plans_.has(plan)) {
    say(true, "that plan was done before");
    return out;
  }
  auto wanted = static_cast<const world_sizes&>(sizes_);
  wanted.nodes_max = m.read()->getNodesMax();
  wanted.nodes_min = m.read()->getKeepsMin() ? std::min(sizes_.nodes_min, wanted.nodes_max)
                                             : m.read()->getNodesMin();
  if (const auto why = scale_validation_error(wanted)) {
    say(false, *why);
    return out;
  }
  const auto before = nodes_in_words(sizes_.nodes_min, sizes_.nodes_max);
  const bool is_so = wanted.nodes_min == sizes_.nodes_min && wanted.nodes_max == sizes_.nodes_max;
  if (!is_so || !plan.empty())
    record_sizes(out, wanted, plan);
  if (is_so) {
    say(true, fmt::format("the job is one of {} already", before));
    return out;
  }
  TROUPE_RARE("planner: the job is scaled");
  out.push_back(note{{log::level::notice,
                      "scaled",
                      fmt::format("the job is scaled from {} to {}", before,
                                  nodes_in_words(sizes_.nodes_min, sizes_.nodes_max)),
                      {{"nodes_min", std::int64_t{sizes_.nodes_min}},
                       {"nodes_max", std::int64_t{sizes_.nodes_max}}}}});
  say(true, scaled_in_words());
  if (phase_ == phase::gathering) {
    consider_proposing(out, now);
  } else {
    consider_shrinking(out, now);
    // Standbys, which would make the world larger now, were told that there is no place for them.
    if (phase_ == phase::running && roster_.size() > world_.size() &&
        world_.size() < sizes_.nodes_max)
      growth_.newcomer(now);
  }
  tell_whether_dispensable(out);
  check();
  return out;
}

std::optional<std::string> recovery_core::scale_validation_error(const world_sizes& wanted) const {
  if (phase_ == phase::concluded)
    return "the job is over";
  if (wanted.nodes_min < 1 || wanted.nodes_max < wanted.nodes_min ||
      wanted.nodes_max > limits::nodes_max)
    return fmt::format("{}:{} is no MIN:MAX with 1 to {} nodes", wanted.nodes_min, wanted.nodes_max,
                       limits::nodes_max);
  if (!sizes_.may_have_others && wanted.nodes_max > 1)
    return "the job was started for one node (--nnodes 1), which no other can reach";
  if (!roster_.possible(wanted))
    return fmt::format("no world is possible with {} (--node_unit, --elasticity-config)",
                       nodes_in_words(wanted.nodes_min, wanted.nodes_max));
  return std::nullopt;
}

void recovery_core::record_sizes(effects& out, const world_sizes& wanted, const std::string& plan) {
  resize(wanted.nodes_min, wanted.nodes_max);
  plans_.add(plan);
  out.push_back(record{author_
                           .write<SizesChanged>(current_,
                                                [&](auto b) {
                                                  b.setNodesMin(sizes_.nodes_min);
                                                  b.setNodesMax(sizes_.nodes_max);
                                                  plans_.write(b);
                                                })
                           .any()});
}

void recovery_core::resize(std::uint32_t nodes_min, std::uint32_t nodes_max) {
  sizes_.nodes_min = nodes_min;
  sizes_.nodes_max = nodes_max;
  roster_.resize(nodes_min, nodes_max);
}

/// Not while a member is away, whose loss would end it for nothing; nor for work that is partly
/// done, which would be done again.
void recovery_core::consider_shrinking(effects& out, instant now) {
  if (phase_ != phase::running || world_.size() <= sizes_.nodes_max || roster_.any_away() ||
      !finished_.empty() || planned_)
    return;
  TROUPE_RARE("planner: a world that runs is stopped to shrink");
  end_as_planned(out, now,
                 fmt::format("the job is scaled to at most {}", counted(sizes_.nodes_max, "node")));
}

std::string recovery_core::scaled_in_words() const {
  const auto sizes = nodes_in_words(sizes_.nodes_min, sizes_.nodes_max);
  if (phase_ == phase::gathering)
    return fmt::format("the job is one of {} now; {} here, and none runs workers", sizes,
                       counted(roster_.here(), "node"));
  if (world_.size() > sizes_.nodes_max)
    return fmt::format("the job is one of {} now; its {} start again as fewer, and the others "
                       "stand by",
                       sizes, counted(world_.size(), "node"));
  return fmt::format("the job is one of {} now; {} run workers, {} here", sizes,
                     counted(world_.size(), "node"), counted(roster_.here(), "node"));
}

} // namespace troupe::actors
