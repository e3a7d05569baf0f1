// What a supervisor's decisions are called in reports and logs.

#include "runtime/sup/supervisor_core.hpp"

namespace troupe::sup {

const char* to_string(strategy s) {
  switch (s) {
  case strategy::one_for_one:
    return "one_for_one";
  case strategy::one_for_all:
    return "one_for_all";
  case strategy::rest_for_one:
    return "rest_for_one";
  case strategy::one_fate:
    return "one_fate";
  }
  return "unknown";
}

const char* to_string(restart r) {
  switch (r) {
  case restart::permanent:
    return "permanent";
  case restart::transient:
    return "transient";
  case restart::temporary:
    return "temporary";
  }
  return "unknown";
}

const char* to_string(happening h) {
  switch (h) {
  case happening::started:
    return "started";
  case happening::restarted:
    return "restarted";
  case happening::start_failed:
    return "start_failed";
  case happening::failed:
    return "failed";
  case happening::ended:
    return "ended";
  case happening::fatal:
    return "fatal";
  case happening::stopped_badly:
    return "stopped_badly";
  case happening::killed:
    return "killed";
  case happening::gave_up:
    return "gave_up";
  }
  return "unknown";
}

const char* to_string(supervisor_phase p) {
  return supervisor_phases.name(p);
}

const char* to_string(child_phase p) {
  return child_phases.name(p);
}

} // namespace troupe::sup
