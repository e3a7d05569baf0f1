#pragma once

#include "runtime/base/time.hpp"

#include <cstdint>
#include <optional>

namespace troupe::actors {

/// What follows from a verdict. Each does what the one before it does as well.
enum class hang_action : std::uint8_t {
  tell,   ///< a line in the log
  notify, ///< the user's notify hook hears it
  act,    ///< the culprits of a hang are ended, which is an ordinary failure
};

/// When a standstill is explained, and what follows.
struct diagnosis_policy {
  hang_action action = hang_action::tell;
  /// The user's limit: nothing of what follows makes a verdict later than it. A rank that moves is
  /// still given `moves_factor` times as long, and never ended.
  std::optional<duration> fixed_limit;
  /// After the first report of a standstill: how long the other nodes' reports are waited for.
  duration grace = 300ms;
  /// A node that has not answered by then is left to its lease.
  duration answer_within = 2s;
  /// While a standstill is not explained all nodes are asked again, each time after half as long
  /// again.
  duration ask_again_first = 1s;
  duration ask_again_most = 30s;
  /// A rank that moves, and reports nothing, may be at something long: it is named after so many of
  /// its limits, and not before:
  double moves_factor = 10;
  duration moves_least = 10min;
  /// The same of one that is in a call which may take long, or that runs a loop of Python outside
  /// of any step: a metric, a factorization, a service that answers late.
  duration works_least = 6min;
  /// The same of one that sleeps until another of its threads or processes lets it go on, where one
  /// of these may be about to: whether that is the one cannot be known.
  duration awaits_least = 60s;
  /// A standstill that passed by itself was none: in that phase all ranks are given so many times
  /// as long from then on, at most:
  double survived_factor = 1.5;
  duration survived_most = 30min;
  /// All ranks stand alike, and none waits for another: a long computation looks like this, too.
  duration alike_least = 60s;
  /// The same where all wait for their input: a file system that hangs.
  duration alike_in_input_least = 10s;
  /// The kernel holds a rank that has asked for its data to be written out: a slow disk.
  duration writes_out_least = 2min;
  /// Verdicts about one rank by which nothing is done are told this often.
  duration tell_again_after = 10min;
  /// A verdict must have stood for so long before a process is ended for it. After each end so many
  /// times as long, up to the most, until it has been calm for a while: what looks like a hang at
  /// the same step of each restart would use up all of them.
  duration confirm = 2s;
  double confirm_factor = 5;
  duration confirm_most = 5min;
  duration confirm_calm_after = 1h;
  /// No process is ended sooner that may be at work: one that uses a processor, or is outside of
  /// any step; and one in a call that may take long.
  duration act_least = 10min;
  duration act_works_least = 30min;
  /// Outside of any step, in a lock that native code may let go of; and one whose script is over,
  /// without any motion.
  duration act_locked_least = 60s;
  duration act_ended_least = 60s;
  /// A rank whose time in a step is so many times the median of the others', for so long and for so
  /// many steps, is slow.
  double straggler_score = 1.5;
  duration straggler_least = 1s;
  std::uint32_t straggler_steps = 5;
  /// One that was never faster is told at this score: stages of a pipeline differ from the start.
  double straggler_from_start = 1.8;
  /// A larger world that does less than a smaller one did is undone: the job is scaled back.
  bool undoes_worse_scaling = false;
  /// How long stacks may take: a crowded machine needs longer, and whatever has come by then is
  /// drawn. And how often they are asked for: so many at once, then in distances that grow from the
  /// first to the longest.
  duration stacks_within = 5s;
  std::uint32_t stacks_at_once = 2;
  duration stacks_again_first = 30s;
  duration stacks_again_most = 1h;
};

} // namespace troupe::actors
