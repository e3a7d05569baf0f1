#pragma once

#include "diag/progress/page_writer.hpp"

#include <cstdint>

/// The phases of a training script that says nothing itself, from the few moments at which hooks
/// are called.
///
///     input │ forward │ backward │ other │ optimizer │ other │ input …
///
/// `forward` has no hook of its own, since one on every module would cost more than it tells: it is
/// what lies between a batch and the backward pass. An evaluation is a batch that cannot be trained
/// on, as no gradients are recorded when it comes, or one that follows such a batch: gradients were
/// off, and no backward pass and no step came. Whether a module is in its evaluation mode says less
/// (parts of a model stay frozen), and cannot be seen without standing in the script's way.
namespace troupe::worker {

enum class moment : std::uint32_t {
  input_begins,
  input_ends,    ///< with a batch
  input_is_over, ///< without
  backward_begins,
  backward_ends,
  optimizer_begins,
  optimizer_ends,
  minor_optimizer_ends,
  gradients_switched, ///< on or off, or on as before
};

/// Phases only; whether a step is made is the caller's to know. Pure.
class observed_script {
 public:
  /// `gradients`: they are recorded, after this moment.
  void see(diag::page_writer& to, moment seen, bool gradients, std::uint64_t now);

 private:
  void see_batch(diag::page_writer& to, bool gradients, std::uint64_t now);
  void see_switch(diag::page_writer& to, bool gradients, std::uint64_t now);
  void see_training(diag::page_writer& to, std::uint64_t now);

  /// Since the last batch; before the first of a loader there is nothing to be concluded from.
  bool gradients_were_off_ = false; ///< but for what a loader or an optimizer does by itself
  bool has_trained_ = true;
  /// The evaluation began with gradients off, and ends when they are on again.
  bool ends_with_gradients_ = false;
};

} // namespace troupe::worker
