#include "launch/options/hangs.hpp"

#include "launch/options/arguments.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace troupe::launch {

option_group hangs_group(hang_arguments& w) {
  return in_full(option_group{
      "Ranks that stand still",
      {among({"off", "tell", "notify", "act", "0", "1", "2"},
             {scope::both,
              {"--hang-action"},
              "WHAT",
              "When a rank keeps the others waiting: tell which one, and why (tell, 0; default); "
              "run --hang-command as well (notify, 1); end it as well, so that the job starts "
              "again (act, 2); off watches none",
              into(w.action)}),
       {scope::both,
        {"--hang-timeout"},
        "SECONDS",
        "A rank hangs when it has stood still for so long (0, the default: as learnt from "
        "its own steps)",
        into(w.timeout)},
       {scope::master,
        {"--hang-command"},
        "COMMAND",
        "For sh, on the machine of the master: TROUPE_HANG_SENTENCE, _RANKS, _KIND and _STACKS say "
        "what was found",
        into(w.command)}}});
}

result<hang_options> derive_hangs(const hang_arguments& w,
                                  const std::map<std::string, std::string>& environment) {
  // The numbers are DLRover's.
  static const std::map<std::string, hang_action> actions{
      {"off", hang_action::off},       {"tell", hang_action::tell}, {"0", hang_action::tell},
      {"notify", hang_action::notify}, {"1", hang_action::notify},  {"act", hang_action::act},
      {"2", hang_action::act}};
  constexpr double seconds_min = 0.5, seconds_max = 1e6;
  hang_options o;
  o.action = actions.at(w.action);
  o.command = w.command;
  if (const auto said = environment.find("XPU_TIMER_TIMELINE_PATH");
      said != environment.end() && !said->second.empty())
    o.dumps = std::filesystem::absolute(said->second);
  if (w.timeout != 0) {
    if (!(w.timeout >= seconds_min && w.timeout <= seconds_max))
      return failure(errc::invalid, fmt::format("--hang-timeout: {} is not from {} to {} seconds",
                                                w.timeout, seconds_min, seconds_max));
    o.timeout = std::chrono::duration_cast<duration>(std::chrono::duration<double>(w.timeout));
  }
  if (o.action == hang_action::notify && o.command.empty())
    return failure(errc::invalid, "--hang-action notify: --hang-command says what is to be run");
  return o;
}

} // namespace troupe::launch
