#include "worker/progress/observed_script.hpp"

namespace troupe::worker {

using diag::phase;

namespace {

/// Training goes on, whatever was open.
void end_evaluation_and_forward(diag::page_writer& to, std::uint64_t now) {
  to.leave(phase::evaluation, now);
  to.leave(phase::forward, now);
}

} // namespace

void observe(diag::page_writer& to, moment seen, std::uint64_t now) {
  switch (seen) {
  case moment::input_begins:
    to.leave(phase::forward, now);
    to.enter(phase::input, {}, now);
    break;
  case moment::input_ends:
    to.leave(phase::input, now);
    // Inside a phase that the script or an evaluation has opened, that is what goes on.
    if (to.is_outside())
      to.enter(phase::forward, {}, now);
    break;
  case moment::backward_begins:
    end_evaluation_and_forward(to, now);
    to.enter(phase::backward, {}, now);
    break;
  case moment::backward_ends:
    to.leave(phase::backward, now);
    break;
  case moment::optimizer_begins:
    end_evaluation_and_forward(to, now);
    to.enter(phase::optimizer, {}, now);
    break;
  case moment::optimizer_ends:
  case moment::minor_optimizer_ends:
    to.leave(phase::optimizer, now);
    break;
  case moment::evaluation_begins:
    to.leave(phase::forward, now);
    if (!to.is_in(phase::evaluation))
      to.enter(phase::evaluation, {}, now);
    break;
  case moment::training_begins:
    to.leave(phase::evaluation, now);
    break;
  }
}

} // namespace troupe::worker
