#pragma once

#include "diag/progress/page_writer.hpp"

#include <cstdint>

/// The phases of a training script that says nothing itself, from the few moments at which hooks
/// are called.
///
///     input │ forward │ backward │ other │ optimizer │ other │ input …
///
/// `forward` has no hook of its own, since one on every module would cost more than it tells: it is
/// what lies between a batch and the backward pass. A module that is put in evaluation mode is the
/// beginning of an evaluation, or a part of the model that stays frozen: the next backward pass or
/// step ends the phase in either case.
namespace troupe::worker {

enum class moment : std::uint32_t {
  input_begins,
  input_ends,
  backward_begins,
  backward_ends,
  optimizer_begins,
  optimizer_ends,
  minor_optimizer_ends,
  evaluation_begins,
  training_begins,
};

/// Phases only; whether a step is made is the caller's to know. Pure.
void observe(diag::page_writer& to, moment seen, std::uint64_t now);

} // namespace troupe::worker
