#include "launch/wiring/program.hpp"

#include "runtime/os/log/console_sink.hpp"
#include "runtime/os/process/local_services.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>

#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace troupe::launch {

std::vector<std::string> arguments_of(int argc, char** argv) {
  return {argv + 1, argv + argc};
}

void say(std::string_view text) {
  constexpr auto patience = std::chrono::milliseconds(limits::log_end_within);
  while (!text.empty()) {
    pollfd out{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&out, 1, static_cast<int>(patience.count())) <= 0)
      return;
    // A pipe that is ready takes this much without waiting.
    const auto written =
        ::write(STDERR_FILENO, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    if (written <= 0)
      return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

int report_error(const char* program, const std::string& what, int exit_code) {
  say(fmt::format("{}: {}\n", program, what));
  return exit_code;
}

void leave(int exit_code) {
  std::_Exit(exit_code);
}

namespace {

const char* terminating_program = "troupe";

/// A system that is out of memory, threads or descriptors is the user's to mend: that is an exit
/// code and no core dump. Everything else is a bug of ours, whose core dump tells where.
[[noreturn]] void end_with_one_line() {
  try {
    if (const auto reason = std::current_exception())
      std::rethrow_exception(reason);
    report_error(terminating_program, "internal error: terminated without an exception",
                 exit_failure);
  } catch (const std::bad_alloc&) {
    leave(report_error(terminating_program, "out of memory", exit_failure));
  } catch (const std::runtime_error& e) {
    leave(report_error(terminating_program, e.what(), exit_failure));
  } catch (const std::exception& e) {
    report_error(terminating_program, fmt::format("internal error: {}", e.what()), exit_failure);
  } catch (...) {
    report_error(terminating_program, "internal error: an unknown exception", exit_failure);
  }
  std::abort();
}

} // namespace

void prepare_process(const char* program) {
  if (const auto opened = os::open_missing_streams(); !opened)
    leave(report_error(program, opened.error().what, exit_failure));
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  terminating_program = program;
  ::prctl(PR_SET_NAME, program); // whatever name it was started by
  std::set_terminate(end_with_one_line);
}

result<std::unique_ptr<os::logs>> open_log(const common_options& o, os::log_origin origin,
                                           log::sink also, std::size_t queue_max) {
  return os::logs::open(
      {o.talk, stderr, o.json_log, queue_max, std::move(also), std::move(origin)});
}

namespace {

result<os::proof> proof_of(const common_options& o) {
  if (!o.reaches_other_machines())
    return os::local_token{};
  if (!o.certificate.empty())
    return os::tls_files{o.certificate, o.key, o.authority, o.revoked};
  auto token = o.token.empty() ? os::job_token::read(o.token_file) : os::job_token::parse(o.token);
  if (!token)
    return tl::make_unexpected(token.error());
  return std::move(*token);
}

} // namespace

std::string today() {
  const auto now = std::chrono::system_clock::now();
  return os::day_and_zone(fmt::localtime(std::chrono::system_clock::to_time_t(now)));
}

std::string own_address_said(const launcher_options& o) {
  return parse_host(o.local_addr).value_or(o.local_addr);
}

result<std::shared_ptr<ports::transport>> open_transport(os::io_thread& io, const common_options& o,
                                                         const log::sink& sink,
                                                         const link::options& timing,
                                                         const std::string& dial_from,
                                                         std::function<link::options()> changing) {
  auto proven_by = proof_of(o);
  if (!proven_by)
    return tl::make_unexpected(proven_by.error());
  os::transport_options options;
  options.link = timing;
  options.timing = std::move(changing);
  options.dial_from = dial_from;
  options.proven_by = std::move(*proven_by);
  options.log = sink;
  auto transport = os::asio_transport::make(io, std::move(options));
  if (!transport)
    return tl::make_unexpected(transport.error());
  return std::shared_ptr<ports::transport>(std::move(*transport));
}

struct signal_watch::parts : std::enable_shared_from_this<parts> {
  parts(os::io_thread& io, std::function<void(int)> f)
      : thread(io), set(io.context()), on_signal(std::move(f)) {}

  void await() {
    set.async_wait(
        [self = shared_from_this()](const boost::system::error_code& cancelled, int number) {
          if (cancelled)
            return;
          self->on_signal(number);
          self->await();
        });
  }

  os::io_thread& thread;
  boost::asio::signal_set set;
  std::function<void(int)> on_signal;
};

signal_watch::signal_watch(os::io_thread& io, const std::vector<int>& signals,
                           std::function<void(int)> on_signal)
    : parts_(std::make_shared<parts>(io, std::move(on_signal))) {
  for (const int number : signals)
    parts_->set.add(number);
  boost::asio::post(io.context(), [p = parts_] { p->await(); });
}

signal_watch::~signal_watch() {
  boost::asio::post(parts_->thread.context(), [p = parts_] { p->set.cancel(); });
}

} // namespace troupe::launch
