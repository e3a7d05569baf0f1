#pragma once

#include <spdlog/sinks/sink.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::os {

/// What the place that lines are shown in can do.
struct console_look {
  bool colours = false;
  /// Of a terminal, where other programs may leave the cursor within a line; 0: no terminal.
  std::size_t columns = 0;
};

enum class console_mark { none, warning, error };

/// One line, with its end, as it is written in one piece: what workers write to the same terminal
/// at the same time cannot get between a colour and its end. Where there are no colours, a word
/// says what they would.
///
/// On a terminal it begins at the beginning of a line, also behind a progress bar: as many blanks
/// as there are columns go to the next line unless the cursor is at the beginning of one, and from
/// either "\r" leads to a beginning. There it is also broken between words, behind the time; not so
/// where a command stands in it, which is to be copied in one piece.
std::string console_line(std::string_view time, std::string_view text, console_mark mark,
                         const console_look& look);

/// "2026-01-31 (UTC+01:00)". Where a day begins the console says it: then times of day are enough,
/// also when they are read after weeks.
std::string day_and_zone(const std::tm& local);

/// Lines for people, on the stream that workers share.
class console_sink final : public spdlog::sinks::sink {
 public:
  explicit console_sink(std::FILE* stream);

  void log(const spdlog::details::log_msg& message) override;
  void flush() override { std::fflush(stream_); }
  /// The lines have one shape.
  void set_pattern(const std::string& /*pattern*/) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter> /*formatter*/) override {}

 private:
  console_look look() const;
  void write(const std::string& line);

  std::FILE* stream_;
  std::mutex& alone_; ///< spdlog's for all consoles of the process
  bool terminal_, colours_;
  std::optional<std::tm> last_;
};

} // namespace troupe::os
