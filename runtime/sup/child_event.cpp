#include "runtime/sup/child_event.hpp"

#include <utility>

namespace troupe::sup::detail {

namespace {

log::level level_of(happening h) {
  switch (h) {
  case happening::started:
    return log::level::debug;
  case happening::ended:
  // What one fate is for: not the supervision's trouble, and the child has said what it is.
  case happening::fatal:
    return log::level::info;
  case happening::restarted:
  case happening::start_failed:
  case happening::failed:
  case happening::stopped_badly:
  case happening::killed:
    return log::level::warning;
  case happening::gave_up:
    return log::level::error;
  }
  return log::level::error;
}

const char* words_of(happening h) {
  switch (h) {
  case happening::started:
    return "started";
  case happening::restarted:
    return "started again";
  case happening::start_failed:
    return "could not be started";
  case happening::failed:
    return "failed and is to be started again";
  case happening::ended:
    return "ended";
  case happening::fatal:
    return "failed, and its siblings end with it";
  case happening::stopped_badly:
    return "failed while being stopped";
  case happening::killed:
    return "was killed";
  case happening::gave_up:
    return "failed once too often, giving up";
  }
  return "";
}

} // namespace

log::event child_event(const std::string& supervisor, const effect::report& what) {
  std::string text = what.offender + " " + words_of(what.what);
  if (!what.reason.empty())
    text += ": " + what.reason;
  return {level_of(what.what),
          std::string("child_") + to_string(what.what),
          std::move(text),
          {{"supervisor", supervisor},
           {"context", to_string(what.during)},
           {"reason", what.reason},
           {"offender", what.offender}}};
}

} // namespace troupe::sup::detail
