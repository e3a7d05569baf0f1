#pragma once

#include "runtime/base/log.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"

#include <functional>
#include <string>

/// A launcher runs the master if the endpoint's address is its own, so the endpoint's name must
/// resolve first. The name of a pod often does so a few seconds after the pod was started.
namespace troupe::launch {

/// Asks the resolver; blocks while it asks. Empty once the host has an address; else, in words, why
/// it has none yet.
std::string look_up(const std::string& host);

/// What a wait for a name needs.
struct name_wait {
  std::function<std::string(const std::string& host)> lookup = look_up;
  std::function<instant()> now;
  /// Lets so much time pass; false if the wait is to end.
  std::function<bool(duration)> pause;
  log::sink log;
};

/// Waits until the host's name resolves, and says so now and again. `unavailable` with one line if
/// it does not `within` so much time; `closed` if a pause said that the wait is to end.
result<void> await_name(const std::string& host, duration within, const name_wait& by);

} // namespace troupe::launch
