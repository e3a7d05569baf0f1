#include "launch/failure_summary.hpp"

#include "runtime/os/log/printable.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <csignal>
#include <cstring>
#include <ctime>

namespace troupe::launch {

namespace {

std::string time_of(std::int64_t unix_time_ms) {
  return fmt::format("{:%Y-%m-%d_%H:%M:%S}",
                     fmt::localtime(static_cast<std::time_t>(unix_time_ms / 1000)));
}

std::string block(unsigned index, messages::WorkerFailure::Reader f) {
  const auto code = f.getExitCode();
  const char* name = code < 0 ? ::sigabbrev_np(-code) : nullptr;
  return fmt::format("[{}]:\n"
                     "  time      : {}\n"
                     "  node      : {}\n"
                     "  rank      : {} (local_rank: {})\n"
                     "  exitcode  : {} (pid: {}){}\n"
                     "  error     : {}\n",
                     index, time_of(f.getUnixTimeMs()), os::printable(f.getNode().cStr()),
                     f.getRank(), f.getLocalRank(), code, f.getPid(),
                     name ? fmt::format(" (SIG{})", name) : "",
                     os::printable(f.getMessage().cStr()));
}

} // namespace

std::string failure_summary(const std::string& what,
                            const messages::msg<messages::Conclude>& verdict) {
  auto v = verdict.read();
  const auto failures = v->getFailures();
  const std::string thick(60, '='), thin(60, '-');
  std::string text =
      fmt::format("{}\n{} FAILED\n{}\n", thick, what, os::printable(v->getReason().cStr()));
  if (failures.size() > 0) {
    text +=
        fmt::format("{}\nRoot Cause (first observed failure):\n{}", thin, block(0, failures[0]));
    if (failures.size() > 1)
      text += fmt::format("{}\nOther Failures:\n", thin);
    for (unsigned i = 1; i < failures.size(); ++i)
      text += block(i, failures[i]);
  }
  return text + thick + "\n";
}

int exit_code_of(const messages::msg<messages::Conclude>& verdict) {
  const auto failures = verdict.read()->getFailures();
  const auto code = failures.size() > 0 ? failures[0].getExitCode() : 0;
  if (code == 0)
    return 1;
  return code > 0 ? code : 128 - code;
}

} // namespace troupe::launch
