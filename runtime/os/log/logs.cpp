#include "runtime/os/log/logs.hpp"

#include "runtime/base/limits.hpp"
#include "runtime/os/log/console_sink.hpp"
#include "runtime/os/log/json_line.hpp"
#include "runtime/os/log/printable.hpp"
#include "runtime/os/regular_file.hpp"

#include <fmt/format.h>
#include <spdlog/async_logger.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/sinks/basic_file_sink.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#include <signal.h>

namespace troupe::os {

namespace {

log::level least_told(verbosity how_much) {
  switch (how_much) {
  case verbosity::quiet:
    return log::level::warning;
  case verbosity::normal:
    return log::level::notice;
  case verbosity::verbose:
    break;
  }
  return log::level::debug;
}

/// spdlog's levels only choose how the console marks a line.
spdlog::level::level_enum mark_of(log::level severity) {
  switch (severity) {
  case log::level::warning:
    return spdlog::level::warn;
  case log::level::error:
    return spdlog::level::err;
  default:
    return spdlog::level::info;
  }
}

/// A signal here would be one that the main thread waits for; a broken pipe is an error like
/// others.
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
  ::pthread_setname_np(::pthread_self(), "troupe-log");
}

result<std::shared_ptr<spdlog::sinks::sink>> make_file(const std::string& path) {
  try {
    auto file = std::make_shared<spdlog::sinks::basic_file_sink_st>(path);
    file->set_pattern("%v");
    return file;
  } catch (const spdlog::spdlog_ex& e) {
    return failure(errc::invalid, fmt::format("log file '{}': {}", path, e.what()));
  }
}

} // namespace

class logs::outputs {
 public:
  outputs(const log_options& options, std::shared_ptr<spdlog::sinks::sink> file)
      : least_(least_told(options.console)), also_(options.also), origin_(options.origin),
        writer_(make_writer(options.queue_max)),
        screen_(std::make_shared<console_sink>(options.stream)),
        console_(logger("console", screen_, writer_)),
        patience_(is_regular_file(::fileno(options.stream)) ? limits::log_end_on_disk_within
                                                            : limits::log_end_within) {
    // There is no third place to say it; a job goes on without its terminal.
    console_->set_error_handler([](const std::string&) {});
    if (!file)
      return;
    file_writer_ = make_writer(options.queue_max);
    file_ = logger("file", std::move(file), file_writer_);
    // Called by the file's thread.
    file_->set_error_handler([this, path = options.json_file](const std::string& what) {
      if (!std::exchange(told_, true))
        warn(fmt::format("log file '{}' is not complete: {}", path, what));
    });
  }

  void write(const std::string& component, const log::event& event) {
    // Only closing holds it alone, and what comes after the end is dropped.
    const std::shared_lock open(closing_, std::try_to_lock);
    if (!open || !writer_)
      return;
    if (event.severity >= least_) {
      const auto line = least_ == log::level::debug
                            ? printable(fmt::format("[{}] {}", component, event.text))
                            : printable(event.text);
      console_->log(mark_of(event.severity), std::string_view(line));
    }
    write_to_file(component, event);
    if (also_)
      also_(component, event);
  }

  /// How long close() may take.
  duration patience() const { return patience_; }

  void close_console() {
    const std::unique_lock alone(closing_);
    const auto dropped = writer_->overrun_counter();
    waiting_ = dropped + writer_->queue_size() + 1; // and the one that is being written
    writer_.reset();
    if (dropped > 0)
      warn(fmt::format("{} lines of the log were dropped: the terminal or the disk was too slow",
                       dropped));
  }

  /// Of a console that could not be closed in time: it takes nothing any more.
  void tell_untaken() {
    write_to_file("log", {log::level::warning,
                          "console_stuck",
                          fmt::format("the console takes nothing: up to {} lines are only here",
                                      waiting_.load()),
                          {{"lines", static_cast<std::int64_t>(waiting_.load())}}});
  }

  /// After the console.
  void close_file() { file_writer_.reset(); }

 private:
  using writer = std::shared_ptr<spdlog::details::thread_pool>;

  /// A thread for each place: a terminal that takes nothing does not hold the file up.
  static writer make_writer(std::size_t queue_max) {
    return std::make_shared<spdlog::details::thread_pool>(queue_max, 1, block_signals);
  }

  static std::shared_ptr<spdlog::async_logger>
  logger(const char* name, std::shared_ptr<spdlog::sinks::sink> to, const writer& by) {
    auto made = std::make_shared<spdlog::async_logger>(
        name, std::move(to), by, spdlog::async_overflow_policy::overrun_oldest);
    // Every line reaches the kernel at once, so that the log of a killed launcher is whole.
    made->flush_on(spdlog::level::trace);
    return made;
  }

  void write_to_file(const std::string& component, const log::event& event) {
    if (!file_)
      return;
    const auto line = json_line(origin_, component, event, std::chrono::system_clock::now(),
                                std::chrono::steady_clock::now());
    file_->log(spdlog::level::info, std::string_view(line));
  }

  /// Tells something about the log itself. By the file's thread, or when the console's has ended.
  void warn(const std::string& text) {
    const auto line = printable(text);
    screen_->log(spdlog::details::log_msg("log", spdlog::level::warn, line));
  }

  log::level least_;
  log::sink also_;
  log_origin origin_;
  std::shared_mutex closing_;
  bool told_ = false; ///< the file's thread's
  std::atomic<std::size_t> waiting_{0};
  writer writer_;      ///< the console's; its destructor writes what is queued
  writer file_writer_; ///< the same for the file, if there is one
  std::shared_ptr<console_sink> screen_;
  std::shared_ptr<spdlog::async_logger> console_;
  duration patience_;
  std::shared_ptr<spdlog::async_logger> file_;
};

result<std::unique_ptr<logs>> logs::open(const log_options& options) {
  std::shared_ptr<spdlog::sinks::sink> file;
  if (!options.json_file.empty()) {
    auto made = make_file(options.json_file);
    if (!made)
      return tl::make_unexpected(made.error());
    file = std::move(*made);
  }
  return std::unique_ptr<logs>(new logs(std::make_shared<outputs>(options, std::move(file))));
}

logs::logs(std::shared_ptr<outputs> to) : to_(std::move(to)) {}

namespace {

/// Whether it has ended by then; else it goes on, on a thread of its own.
template<class Act>
bool ends_within(duration patience, Act act) {
  const auto ended = std::make_shared<std::promise<void>>();
  const auto in_time = ended->get_future();
  const auto run = [act, ended] {
    act();
    ended->set_value();
  };
  try {
    std::thread running(run);
    if (in_time.wait_for(patience) == std::future_status::ready) {
      running.join();
      return true;
    }
    running.detach();
    return false;
  } catch (const std::system_error&) {
    run(); // the system refuses a thread: then the end does wait
    return true;
  }
}

} // namespace

/// The terminal may take nothing any more: then what is queued for it is lost, and the end of the
/// process does not wait.
logs::~logs() {
  if (!ends_within(to_->patience(), [to = to_] { to->close_console(); }))
    to_->tell_untaken();
  ends_within(limits::log_end_on_disk_within, [to = to_] { to->close_file(); });
}

log::sink logs::sink() const {
  return [to = to_](const std::string& component, const log::event& event) {
    to->write(component, event);
  };
}

log::sink fan_out(std::vector<log::sink> sinks) {
  return [sinks = std::move(sinks)](const std::string& component, const log::event& event) {
    for (const auto& sink : sinks)
      sink(component, event);
  };
}

} // namespace troupe::os
