#include "launch/mains/programs.hpp"
#include "launch/wiring/program.hpp"
#include "launch/wiring/worker_hooks.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include <unistd.h>

namespace {

using namespace troupe::launch;

constexpr auto program = "xpu_timer_launch";

constexpr auto usage =
    "Usage: xpu_timer_launch PROGRAM [ARGUMENT]...\n\n"
    "Runs PROGRAM, and all that it starts, with the library before CUDA, NCCL and cuBLAS that "
    "times "
    "their calls,\nas xpu_timer's command of this name does. A job of actor-launcher does not need "
    "it: --trace is the same.\n\n"
    "XPU_TIMER_TIMELINE_PATH is the directory of timelines, of figures unless TROUPE_TRACE_DIR is "
    "another, and of\nthe stacks that actor-launcher reads of ranks that stand still "
    "($HOME/timeline); "
    "docs/tracing.md has the rest.\n";

std::string variable(const char* name) {
  const auto* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

} // namespace

/// Becomes the other program. It gets the signals and streams of this one, so nothing is prepared.
int troupe::launch::trace_program(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "-h" || first == "--help") {
    std::fputs(usage, stdout);
    return exit_success;
  }
  if (first.empty())
    return report_error(program, "which program? (see --help)", exit_usage);
  const auto library = trace_library();
  if (!library)
    return report_error(program, library.error().what, exit_failure);
  auto preload = variable("LD_PRELOAD");
  preload = preload.empty() ? *library : *library + ":" + preload;
  auto path = variable("XPU_TIMER_TIMELINE_PATH");
  if (path.empty())
    path = variable("HOME") + "/timeline";
  ::setenv("LD_PRELOAD", preload.c_str(), 1);
  ::setenv("XPU_TIMER_TIMELINE_PATH", path.c_str(), 1);
  ::setenv("TROUPE_TRACE_DIR", path.c_str(), 0);
  ::execvp(argv[1], argv + 1);
  constexpr int cannot_be_run = 126, is_not_there = 127; // as a shell says it
  const auto why = errno;
  return report_error(program, fmt::format("{}: {}", first, std::strerror(why)),
                      why == ENOENT ? is_not_there : cannot_be_run);
}
