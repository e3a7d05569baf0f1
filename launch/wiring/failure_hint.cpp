#include "launch/wiring/failure_hint.hpp"

#include "actors/master/recovery/exit_classes.hpp"

#include <array>
#include <csignal>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace troupe::launch {

using actors::exit_class;
using actors::treatment_of;

namespace {

struct known_cause {
  std::vector<std::string_view> words; ///< any of them, as libraries write them
  const char* hint;
};

/// The first that fits counts: what names a cause goes before what only follows from one.
const std::array<known_cause, 7>& known_causes() {
  static const std::array<known_cause, 7> all{{
      {{"CUDA out of memory", "HIP out of memory", "NPU out of memory"},
       "the accelerator's memory is full: make batches smaller, or see with nvidia-smi what else "
       "uses it"},
      {{"No module named"},
       "the Python in the launcher's first line lacks it: install it there, or name another with "
       "--python"},
      {{"No space left on device"},
       "a disk, or /dev/shm, is full: df -h tells which (containers: --shm-size)"},
      {{"unable to open shared memory object", "unable to mmap", "unable to allocate shared memory",
        "insufficient shared memory"},
       "/dev/shm is too small for data loader workers: enlarge it (containers: --shm-size), or "
       "use fewer of them"},
      {{"Address already in use", "EADDRINUSE"},
       "another process has the port: ss -ltnp names it; an earlier job may still be ending"},
      {{"Watchdog caught collective operation timeout", "Timed out waiting", "ncclRemoteError",
        "collective operation timeout"},
       "another rank did not take part in a collective in time: the one that stopped first has "
       "the cause in its log"},
      {{"Connection reset by peer", "Connection closed by peer", "Broken pipe"},
       "the connection to another rank broke: if that rank failed as well, its failure is the "
       "cause"},
  }};
  return all;
}

struct known_signal {
  int number;
  const char* hint;
};

constexpr std::array<known_signal, 3> known_signals{{
    {SIGILL, "it was built for another processor than this node's"},
    {SIGBUS, "often /dev/shm is full: enlarge it (containers: --shm-size)"},
    {SIGSEGV, "a native library crashed: with PYTHONFAULTHANDLER=1 Python says where"},
}};

/// The kernel's own, which no process can write down.
constexpr auto killed_for_memory =
    "the kernel killed it for want of memory: use fewer workers or data loader processes on a "
    "node, or raise the limit of its control group";

} // namespace

std::string hint_for(const worker_failure& f) {
  if (f.exit_code == -SIGKILL)
    return f.exit_class == treatment_of(exit_class::OUT_OF_MEMORY).name ? killed_for_memory : "";
  for (const auto& cause : known_causes())
    for (const auto text :
         std::initializer_list<std::string_view>{f.traceback, f.message, f.log_tail})
      for (const auto word : cause.words)
        if (text.find(word) != std::string_view::npos)
          return cause.hint;
  for (const auto& [number, hint] : known_signals)
    if (f.exit_code == -number)
      return hint;
  return {};
}

} // namespace troupe::launch
