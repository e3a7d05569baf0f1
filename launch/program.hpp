#pragma once

#include "launch/options.hpp"
#include "launch/run_directory.hpp"
#include "runtime/os/io_thread.hpp"
#include "runtime/os/net/asio_transport.hpp"
#include "runtime/ports/journal_store.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// What the programs' mains have in common.
namespace troupe::launch {

/// Exit codes, as torchrun has them.
inline constexpr int exit_success = 0;
inline constexpr int exit_failure = 1;

std::vector<std::string> arguments_of(int argc, char** argv);

/// Writes to stderr, unless that takes nothing for limits::log_end_within: whoever should read it
/// may have stopped.
void say(std::string_view text);

/// "actor-launcher: what is wrong", on stderr.
int complain(const char* program, const std::string& what, int exit_code);

/// Handles everything but a successful parse: prints, and answers the exit code.
template<class Options>
std::optional<int> unless_parsed(const char* program, const parsed<Options>& p) {
  if (const auto* text = std::get_if<just_print>(&p)) {
    std::fputs(text->text.c_str(), stdout);
    return exit_success;
  }
  if (const auto* wrong = std::get_if<refusal>(&p))
    return complain(program, wrong->what, wrong->exit_code);
  return std::nullopt;
}

/// Ends the program without another word: the library would still flush its streams, and wait for
/// whoever should read them.
[[noreturn]] void leave(int exit_code);

/// Before any thread: SIGPIPE is ignored, so that a closed pipe is an error where it is written to.
void prepare_process();

/// The console and, if asked for, the JSON file; dropping it writes what is queued.
result<std::unique_ptr<os::logs>> open_log(const common_options& o);

/// `lease`: how long a peer may be silent; nothing means the default. `dial_from`: this machine's
/// address to dial from; empty means any.
result<std::shared_ptr<ports::transport>> open_transport(os::io_thread& io, const common_options& o,
                                                         const log::sink& sink,
                                                         std::optional<duration> lease = {},
                                                         const std::string& dial_from = {});

/// The journal that the user named (--journal), which a later master may take up after a power cut,
/// or else one in the run's directory: it serves this run, and ends with this machine.
result<std::unique_ptr<ports::journal_store>> open_journal(const std::string& named,
                                                           const run_directory& directory);

/// Calls `on_signal` from the I/O thread for each of these signals, until dropped.
class signal_watch {
 public:
  signal_watch(os::io_thread& io, const std::vector<int>& signals,
               std::function<void(int)> on_signal);
  ~signal_watch();

 private:
  struct parts;
  std::shared_ptr<parts> parts_;
};

} // namespace troupe::launch
