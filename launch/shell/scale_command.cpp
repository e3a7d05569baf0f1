#include "launch/shell/scale_command.hpp"

#include "launch/shell/terminal.hpp"
#include "launch/wiring/program.hpp"
#include "runtime/os/log/printable.hpp"

#include <fmt/format.h>

namespace troupe::launch {

int scale_job(const shell_options& o, const std::shared_ptr<ports::transport>& transport,
              const ports::endpoint& master, wishes& wants) {
  inquiry asked(
      transport, master, wants.wake, [&wants] { return wants.stop.load(); },
      inquiry::purpose::changes);
  const auto answer = asked.ask_scale(o.scale->nodes_min, o.scale->nodes_max);
  if (!answer)
    return report_error(shell_program,
                        fmt::format("it is not known whether the master at {} has taken it: {}",
                                    ports::to_string(master),
                                    wants.stop ? "interrupted" : answer.error().what),
                        exit_failure);
  const auto text = os::printable(answer->read()->getText().cStr());
  if (!answer->read()->getAccepted())
    return report_error(shell_program, "not scaled: " + text, exit_failure);
  return print(text + "\n") ? exit_success : exit_failure;
}

} // namespace troupe::launch
