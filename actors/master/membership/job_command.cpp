#include "actors/master/membership/job_command.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::actors {

command_identity command_of(messages::Hello::Command::Reader said) {
  return {said.getText().cStr(), said.getScript(), said.getArguments()};
}

job_command::job_command(command_identity known)
    : known_(std::move(known)), proven_(!known_.text.empty()) {}

bool job_command::contradicts(const command_identity& its) const {
  if (known_.text.empty() || its.text.empty())
    return false;
  const bool compared = known_.arguments != 0 && its.arguments != 0;
  return known_.script != its.script || (compared && known_.arguments != its.arguments);
}

std::optional<std::string> job_command::validation_error(const command_identity& its,
                                                         bool trains) const {
  if (!contradicts(its) || (trains && !proven_))
    return std::nullopt;
  return fmt::format(
      "the job at this master runs '{}', and this node was started with '{}'. Another "
      "job needs an address of its own (--rdzv-endpoint){}",
      known_.text, its.text,
      known_.script == its.script
          ? "; nodes of one job whose arguments differ need the same --rdzv-id"
          : "");
}

bool job_command::learn(const command_identity& its, bool trains) {
  if (its.text.empty())
    return false;
  const bool wrong = contradicts(its);
  if (known_.text.empty() || wrong)
    known_ = its;
  proven_ = proven_ || trains;
  return wrong;
}

} // namespace troupe::actors
