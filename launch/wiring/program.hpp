#pragma once

#include "launch/options/options.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/link/options.hpp"
#include "runtime/os/io_thread.hpp"
#include "runtime/os/net/asio_transport.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// What the programs' mains have in common.
namespace troupe::launch {

/// Exit codes, as torchrun has them; `usage` for all that has to be typed differently.
inline constexpr int exit_success = 0;
inline constexpr int exit_failure = 1;
inline constexpr int exit_usage = 2;
/// Nothing is decided about the job, and another attempt may succeed: EX_TEMPFAIL of sysexits.h.
inline constexpr int exit_try_again = 75;
/// As a shell has it for a program that a signal has ended.
inline constexpr int exit_by_signal = 128;

std::vector<std::string> arguments_of(int argc, char** argv);

/// Writes to stderr, unless that takes nothing for limits::log_end_within: its reader may have
/// stopped.
void say(std::string_view text);

/// "actor-launcher: what is wrong", on stderr.
int report_error(const char* program, const std::string& what, int exit_code);

/// Handles everything but a successful parse: prints, and answers the exit code.
template<class Options>
std::optional<int> unless_parsed(const char* program, const parsed<Options>& p) {
  if (const auto* text = std::get_if<just_print>(&p)) {
    std::fputs(text->text.c_str(), stdout);
    return exit_success;
  }
  if (const auto* wrong = std::get_if<refusal>(&p))
    return report_error(program, wrong->what, exit_usage);
  return std::nullopt;
}

/// Ends the program without another word: the library would still flush its streams, and wait for
/// their readers.
[[noreturn]] void leave(int exit_code);

/// The first thing that a program does, before it opens a file or starts a thread. Opens a closed
/// stdin, stdout or stderr on /dev/null; makes a closed pipe and a full quota of file size (ulimit
/// -f) errors where they are written to, and not signals; and has an exception that reaches no
/// handler end the program with one line for the user.
void prepare_process(const char* program);

/// The console and, if asked for, the JSON file; dropping it writes what is queued. `also`: gets
/// the events, too, if it is not empty.
result<std::unique_ptr<os::logs>> open_log(const common_options& o, os::log_origin origin,
                                           log::sink also = {},
                                           std::size_t queue_max = limits::log_queue_max);

/// The day here and the zone, as "2026-11-25 (UTC+00:00)".
std::string today();

/// --local-addr, which may be in brackets; empty if it was not given.
std::string own_address_said(const launcher_options& o);

/// `dial_from`: this machine's address to dial from; empty means any. `changing`: the timing of
/// each new link, where it is not always the same.
result<std::shared_ptr<ports::transport>>
open_transport(os::io_thread& io, const common_options& o, const log::sink& sink,
               const link::options& timing, const std::string& dial_from = {},
               std::function<link::options()> changing = {});

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
