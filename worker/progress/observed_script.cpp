#include "worker/progress/observed_script.hpp"

namespace troupe::worker {

using diag::phase;

void observed_script::see(diag::page_writer& to, moment seen, bool gradients, std::uint64_t now) {
  switch (seen) {
  case moment::input_begins:
    to.leave(phase::forward, now);
    while (to.is_in(phase::optimizer)) // of a step that raised an error: nothing has told its end
      to.leave(phase::optimizer, now);
    to.enter(phase::input, {}, now);
    break;
  case moment::input_ends:
    see_batch(to, gradients, now);
    break;
  case moment::input_is_over:
    to.leave(phase::input, now);
    gradients_were_off_ = false;
    has_trained_ = true;
    if (to.is_outside()) // as after a batch: what comes now is not told apart
      to.enter(phase::forward, {}, now);
    break;
  case moment::backward_begins:
    see_training(to, now);
    to.enter(phase::backward, {}, now);
    break;
  case moment::backward_ends:
    to.leave(phase::backward, now);
    break;
  case moment::optimizer_begins:
    see_training(to, now);
    to.enter(phase::optimizer, {}, now);
    break;
  case moment::optimizer_ends:
  case moment::minor_optimizer_ends:
    to.leave(phase::optimizer, now);
    break;
  case moment::gradients_switched:
    see_switch(to, gradients, now);
    break;
  }
}

void observed_script::see_batch(diag::page_writer& to, bool gradients, std::uint64_t now) {
  to.leave(phase::input, now);
  const bool evaluates = !gradients || (gradients_were_off_ && !has_trained_);
  gradients_were_off_ = has_trained_ = false;
  if (!evaluates)
    to.leave(phase::evaluation, now);
  // Inside a phase that the script or an evaluation has opened, that is what goes on.
  if (!to.is_outside())
    return;
  to.enter(evaluates ? phase::evaluation : phase::forward, {}, now);
  ends_with_gradients_ = !gradients;
}

void observed_script::see_switch(diag::page_writer& to, bool gradients, std::uint64_t now) {
  if (!gradients) {
    if (!to.is_in(phase::input) && !to.is_in(phase::backward) && !to.is_in(phase::optimizer))
      gradients_were_off_ = true;
  } else if (ends_with_gradients_) {
    to.leave(phase::evaluation, now);
    ends_with_gradients_ = gradients_were_off_ = false;
  }
}

/// Training goes on, whatever was open.
void observed_script::see_training(diag::page_writer& to, std::uint64_t now) {
  has_trained_ = true;
  to.leave(phase::evaluation, now);
  to.leave(phase::forward, now);
}

} // namespace troupe::worker
