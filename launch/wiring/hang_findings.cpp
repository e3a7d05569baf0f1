#include "launch/wiring/hang_findings.hpp"

#include "launch/wiring/hang_command.hpp"
#include "launch/wiring/stacks_directory.hpp"

namespace troupe::launch {

void take_hang_options(const hang_options& o, const std::string& directory, const log::sink& sink,
                       actors::diagnosis::options& of) {
  using action = actors::hang_action;
  switch (o.action) {
  case hang_action::off:
  case hang_action::tell:
    of.policy.action = o.command.empty() ? action::tell : action::notify;
    break;
  case hang_action::notify:
    of.policy.action = action::notify;
    break;
  case hang_action::act:
    of.policy.action = action::act;
    break;
  }
  of.policy.fixed_limit = o.timeout;
  of.stacks = stacks_directory(directory);
  if (!o.command.empty())
    of.notify = hang_command(o.command, sink);
}

actors::watch_policy watch_policy_of(const hang_options& o) {
  actors::watch_policy p;
  p.fixed_limit = o.timeout;
  return p;
}

} // namespace troupe::launch
