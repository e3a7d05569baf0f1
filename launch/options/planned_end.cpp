#include "launch/options/planned_end.hpp"

#include "launch/options/arguments.hpp"
#include "launch/options/values.hpp"

#include <fmt/format.h>

namespace troupe::launch {

namespace {

constexpr auto mode_variable = "DLROVER_TRAINING_ELASTIC_MODE";
constexpr auto begin_variable = "DLROVER_UCP_WAIT_TIME";
constexpr auto within_variable = "DLROVER_UCP_MAX_WAIT_TIME";

using variables = std::map<std::string, std::string>;

/// What was said, and by what.
struct said {
  const char* by;
  std::string text;
};

said said_by(const char* option, const std::optional<std::string>& given, const char* variable,
             const variables& environment, const std::string& usual) {
  if (given)
    return {option, *given};
  const auto found = environment.find(variable);
  const bool told = found != environment.end() && !found->second.empty();
  return {told ? variable : option, told ? found->second : usual};
}

result<duration> seconds_of(const said& s) {
  constexpr auto most = std::chrono::duration<double>(limits::planned_end_max).count();
  const auto seconds = python_float(s.text);
  if (!seconds)
    return failure(errc::invalid, fmt::format("{}: '{}' is no number", s.by, s.text));
  if (!(*seconds >= 0 && *seconds <= most))
    return failure(errc::invalid,
                   fmt::format("{}: {} is not from 0 to {} seconds", s.by, *seconds, most));
  return std::chrono::duration_cast<duration>(std::chrono::duration<double>(*seconds));
}

std::string in_seconds(duration d) {
  return fmt::format("{}", std::chrono::duration<double>(d).count());
}

} // namespace

std::vector<std::pair<std::string, std::string>> planned_end_variables() {
  return {{"--elastic-mode", mode_variable},
          {"--graceful-save-within", begin_variable},
          {"--graceful-within", within_variable}};
}

option_group planned_end_group(planned_end_arguments& w) {
  return in_full(option_group{
      "Changes of the world that are planned",
      {among(
           {"base", "ucp"},
           {scope::both,
            {"--elastic-mode"},
            "MODE",
            "ucp: before a world changes by a plan (newcomers, a node that leaves by SIGTERM) one "
            "worker of each node is signalled, and all may save and exit with 0; base: workers "
            "are ended at once (DLROVER_TRAINING_ELASTIC_MODE, else base)",
            into(w.mode)}),
       {scope::both,
        {"--graceful-signal"},
        "NAME",
        "By which a worker is asked to save and end (SIGUSR1)",
        into(w.signal)},
       {scope::job,
        {"--graceful-save-within"},
        "SECONDS",
        "How long after that the first worker must have ended or asked for a save "
        "(DLROVER_UCP_WAIT_TIME, else 30); then all are stopped",
        into(w.begin_within)},
       {scope::both,
        {"--graceful-within"},
        "SECONDS",
        "How long after that all must have ended (DLROVER_UCP_MAX_WAIT_TIME, else 60)",
        into(w.within)},
       {scope::node,
        {"--stop-file"},
        "FILE",
        "With ucp: a file that has workers save and end, too (TROUPE_STOP_FILE tells them); it is "
        "removed before they start (in the run's directory; /tmp/stop, too); empty: none",
        into(w.stop_file)}}});
}

result<planned_end_settings> derive_planned_end(const planned_end_arguments& w,
                                                const variables& environment) {
  planned_end_settings s;
  const auto mode = said_by("--elastic-mode", w.mode, mode_variable, environment, "base");
  if (mode.text != "base" && mode.text != "ucp")
    return failure(errc::invalid, fmt::format("{}: '{}' is not base or ucp", mode.by, mode.text));
  s.asks = mode.text == "ucp";
  const auto number = signal_named(w.signal);
  if (!number)
    return failure(errc::invalid,
                   fmt::format("--graceful-signal: '{}' is no signal that a worker can have a "
                               "handler for (SIGUSR1, SIGUSR2, SIGTERM …)",
                               w.signal));
  s.signal = *number;
  const auto begin = seconds_of(said_by("--graceful-save-within", w.begin_within, begin_variable,
                                        environment, in_seconds(s.begin_within)));
  if (!begin)
    return tl::make_unexpected(begin.error());
  s.begin_within = *begin;
  const auto within = seconds_of(
      said_by("--graceful-within", w.within, within_variable, environment, in_seconds(s.within)));
  if (!within)
    return tl::make_unexpected(within.error());
  s.within = *within;
  if (s.asks)
    s.stop_file = w.stop_file;
  if (w.ucp_device != "cpu")
    s.ucp_device = w.ucp_device;
  return s;
}

} // namespace troupe::launch
