#include "launch/doctor/clock.hpp"

#include "runtime/base/time.hpp"
#include "runtime/os/process/launch_plan.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <ctime>

#include <sys/timex.h>

namespace troupe::launch::doctor {

namespace {

/// 2025-01-01: earlier than this program was written.
constexpr std::int64_t plausible_from = 1'735'689'600;
/// By which clocks may be wrong before the order of events on several machines is not theirs.
constexpr std::int64_t error_most_us = 1'000'000;
constexpr auto compare = "on each node: chronyc tracking or timedatectl; between nodes: ssh "
                         "OTHER-NODE date +%s.%N and compare";

} // namespace

finding judge(const clock_facts& seen) {
  finding f{"clock"};
  std::string wants;
  if (seen.nodes > 1)
    wants = "the newest master is told by clocks when a journal is lost, and logs of several nodes "
            "are compared by them";
  if (seen.certificates)
    wants += std::string(wants.empty() ? "" : "; ") + "certificates are judged by the clock";
  // What costs nothing is only told.
  const auto bad = wants.empty() ? grade::ok : grade::warning;
  f.costs = wants;
  f.remedy = compare;
  if (seen.seconds < plausible_from) {
    f.how = wants.empty() ? grade::note : grade::warning;
    f.found = "it shows a time before 2025";
    f.remedy = "set it, or start chrony or systemd-timesyncd";
    return f;
  }
  if (!seen.unknown.empty()) {
    f.how = wants.empty() ? grade::ok : grade::note;
    f.found = "whether it is synchronised is not known: " + seen.unknown;
  } else if (!seen.synchronised) {
    f.how = bad;
    f.found = "the kernel does not know it to be synchronised (in a container the machine below "
              "may do it)";
  } else if (seen.error_us > error_most_us) {
    f.how = bad;
    f.found = fmt::format("synchronised, but may be wrong by {}",
                          in_words(std::chrono::microseconds(seen.error_us)));
  } else {
    f.found = fmt::format("synchronised, wrong by {} at most",
                          in_words(std::chrono::microseconds(seen.error_us)));
  }
  if (f.how == grade::ok)
    f.costs = f.remedy = {};
  return f;
}

clock_facts look_at_clock(const launcher_options& o) {
  clock_facts seen;
  seen.nodes = o.nodes_max;
  seen.certificates = !o.common.certificate.empty();
  seen.seconds = ::time(nullptr);
  timex about{};
  const int state = ::adjtimex(&about);
  if (state < 0)
    seen.unknown = os::system_message(errno);
  seen.synchronised = state != TIME_ERROR && (about.status & STA_UNSYNC) == 0;
  seen.error_us = about.maxerror;
  return seen;
}

} // namespace troupe::launch::doctor
