#pragma once

#include "runtime/base/random.hpp"
#include "runtime/base/time.hpp"

#include <caf/fwd.hpp>

#include <cstddef>
#include <memory>
#include <optional>

namespace troupe::sup {

/// Runs actors in the caller's thread, under a clock that moves only when told, in an order a seed
/// decides.
class simulated_engine {
 public:
  explicit simulated_engine(instant start = {});
  /// As `power_cut`; always returns.
  ~simulated_engine();
  simulated_engine(const simulated_engine&) = delete;
  simulated_engine& operator=(const simulated_engine&) = delete;

  caf::actor_system& system();

  instant now() const;

  /// When the next timer is due; nothing if none is armed. May lie in the past if the clock has not
  /// been advanced since.
  std::optional<instant> next_timer() const;

  /// Moves the clock. Timers due by then fire, in order; what they cause runs only with run_one or
  /// run_all.
  void advance(duration by);

  /// Lets one actor that has something to do handle one message. False if none has.
  bool run_one(random_source& random);

  /// The same, but the one that has waited longest: an order that people can follow.
  bool run_first();

  /// Runs until no actor has anything to do at this instant. Returns how many messages were
  /// handled.
  std::size_t run_all(random_source& random);

  /// Lets time pass: runs, moves to the next timer, runs…, and ends with the clock `by` later and
  /// nothing left to do.
  std::size_t run_for(duration by, random_source& random);

  /// The machine is gone: no timer fires any more and every actor of every root ends without being
  /// asked.
  void power_cut();

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

} // namespace troupe::sup
