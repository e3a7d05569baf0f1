#include "tests/sim/checkers/checkers.hpp"

namespace troupe::sim::checkers {

std::vector<std::shared_ptr<observer>> all(world& w, const trainers& t, std::uint32_t max_restarts,
                                           const actors::world_sizes& sizes, duration lease,
                                           bool one_directory, ckpt::retention keep) {
  return {one_world_per_generation(w),
          ranks_are_dense(w),
          ranks_are_stable(w),
          worlds_fit_the_sizes(w, sizes),
          processes_follow_the_generation(w, t),
          standbys_are_idle(w, t),
          start_after_prepared(w),
          restarts_within_budget(w, max_restarts),
          failures_counted_once(w),
          nothing_left_behind(w, t),
          rank_0_has_a_store(w),
          questions_are_answered(w),
          pauses_are_forgiven(w, lease),
          silence_is_noticed(w, lease),
          queues_are_bounded(w),
          actors_are_sound(w),
          one_verdict(w),
          checkpoints_are_kept(w),
          complete_steps_stay(w, one_directory, keep)};
}

} // namespace troupe::sim::checkers
