#include "launch/options/signals.hpp"

#include "launch/options/values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>

namespace troupe::launch {

namespace {

struct known_signal {
  const char* name;
  int number;
  /// A request that a program may take and live on: it is not sent to end a job.
  bool passed_on;
};

constexpr std::array known_signals{
    known_signal{"SIGTERM", SIGTERM, false},  known_signal{"SIGINT", SIGINT, false},
    known_signal{"SIGHUP", SIGHUP, false},    known_signal{"SIGQUIT", SIGQUIT, false},
    known_signal{"SIGALRM", SIGALRM, false},  known_signal{"SIGVTALRM", SIGVTALRM, false},
    known_signal{"SIGPROF", SIGPROF, false},  known_signal{"SIGXCPU", SIGXCPU, false},
    known_signal{"SIGXFSZ", SIGXFSZ, false},  known_signal{"SIGIO", SIGIO, false},
    known_signal{"SIGPOLL", SIGIO, false},    known_signal{"SIGPWR", SIGPWR, false},
    known_signal{"SIGTSTP", SIGTSTP, false},  known_signal{"SIGTTIN", SIGTTIN, false},
    known_signal{"SIGTTOU", SIGTTOU, false},  known_signal{"SIGUSR1", SIGUSR1, true},
    known_signal{"SIGUSR2", SIGUSR2, true},   known_signal{"SIGCONT", SIGCONT, true},
    known_signal{"SIGWINCH", SIGWINCH, true}, known_signal{"SIGURG", SIGURG, true},
};

} // namespace

std::optional<int> signal_named(const std::string& name) {
  const auto found = std::find_if(known_signals.begin(), known_signals.end(),
                                  [&](const known_signal& k) { return name == k.name; });
  return found == known_signals.end() ? std::nullopt : std::optional(found->number);
}

result<signal_options> parse_signals(const std::string& text) {
  signal_options s;
  s.words = text;
  for (const auto& word : split(text, ',')) {
    const auto name = stripped(word);
    if (name.empty())
      continue;
    const auto found = std::find_if(known_signals.begin(), known_signals.end(),
                                    [&](const known_signal& k) { return name == k.name; });
    if (found == known_signals.end())
      return failure(errc::invalid,
                     fmt::format("--signals-to-handle: '{}' is no signal that can be handled here "
                                 "(SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 …)",
                                 name));
    auto& numbers = found->passed_on ? s.passed_on : s.ending;
    if (std::find(numbers.begin(), numbers.end(), found->number) == numbers.end())
      numbers.push_back(found->number);
  }
  return s;
}

} // namespace troupe::launch
