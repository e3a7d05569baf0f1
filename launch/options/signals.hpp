#pragma once

#include "runtime/base/result.hpp"

#include <optional>
#include <string>
#include <vector>

/// `--signals-to-handle`: what the launcher does with signals of its user.
namespace troupe::launch {

constexpr auto signals_by_default = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";

struct signal_options {
  /// Passed to every worker, then the job ends; a second one does not wait.
  std::vector<int> ending;
  /// Passed to every worker, and the job goes on.
  std::vector<int> passed_on;
  /// As it was written: the workers find it in TORCHELASTIC_SIGNALS_TO_HANDLE.
  std::string words = signals_by_default;
};

/// Of a signal that a process can handle.
std::optional<int> signal_named(const std::string& name);

/// "SIGTERM,SIGUSR1"; empty words name nothing. Refused: what is no signal, what cannot be caught,
/// and what this process needs for itself.
result<signal_options> parse_signals(const std::string& text);

} // namespace troupe::launch
