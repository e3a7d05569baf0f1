#include "runtime/os/log/console_sink.hpp"

#include "runtime/base/filled.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/details/console_globals.h>
#include <spdlog/details/os.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include <sys/ioctl.h>
#include <unistd.h>

namespace troupe::os {

namespace {

constexpr std::string_view yellow_bold = "\033[33m\033[1m", red_bold = "\033[31m\033[1m",
                           reset = "\033[m";

bool wants_no_colour() {
  const char* said = std::getenv("NO_COLOR");
  return said != nullptr && *said != '\0';
}

console_mark mark_of(spdlog::level::level_enum severity) {
  if (severity == spdlog::level::err)
    return console_mark::error;
  return severity == spdlog::level::warn ? console_mark::warning : console_mark::none;
}

constexpr std::size_t narrowest = 60;

bool has_a_command(std::string_view text) {
  constexpr std::array programs{"actor-launcher ", "actor-shell ", "actor-master ", "troupe "};
  return std::any_of(programs.begin(), programs.end(), [text](const char* program) {
    return text.find(program) != std::string_view::npos;
  });
}

std::string marked(std::string_view text, console_mark mark, bool colours) {
  if (mark == console_mark::none)
    return std::string(text);
  const bool error = mark == console_mark::error;
  return colours ? fmt::format("{}{}{}", error ? red_bold : yellow_bold, text, reset)
                 : fmt::format("{}: {}", error ? "error" : "warning", text);
}

} // namespace

std::string console_line(std::string_view time, std::string_view text, console_mark mark,
                         const console_look& look) {
  const auto to_beginning =
      look.columns == 0 ? std::string{} : std::string(look.columns, ' ') + "\r";
  const auto indent = time.size() + 2;
  const bool breaks = look.columns >= narrowest && !has_a_command(text);
  // A full last column makes some terminals go to the next line.
  const auto shown = breaks ? filled(text, indent, look.columns - 1) : std::string(text);
  return fmt::format("{}{}  {}\n", to_beginning, time, marked(shown, mark, look.colours));
}

std::string day_and_zone(const std::tm& local) {
  const auto minutes = local.tm_gmtoff / 60;
  return fmt::format("{:%Y-%m-%d} (UTC{}{:02}:{:02})", local, minutes < 0 ? '-' : '+',
                     std::abs(minutes) / 60, std::abs(minutes) % 60);
}

console_sink::console_sink(std::FILE* stream)
    : stream_(stream), alone_(spdlog::details::console_mutex::mutex()),
      terminal_(spdlog::details::os::in_terminal(stream) &&
                spdlog::details::os::is_color_terminal()),
      colours_(terminal_ && !wants_no_colour()) {}

console_look console_sink::look() const {
  winsize size{};
  const bool known = terminal_ && ::ioctl(::fileno(stream_), TIOCGWINSZ, &size) == 0;
  return {colours_, known ? size.ws_col : std::size_t{0}};
}

void console_sink::log(const spdlog::details::log_msg& message) {
  using namespace std::chrono;
  const auto local = fmt::localtime(system_clock::to_time_t(message.time));
  const auto ms = duration_cast<milliseconds>(message.time.time_since_epoch()).count() % 1000;
  const std::lock_guard lock(alone_);
  const auto seen = look();
  if (last_ && (last_->tm_yday != local.tm_yday || last_->tm_year != local.tm_year))
    write(console_line("00:00:00.000", day_and_zone(local) + " begins", console_mark::none, seen));
  last_ = local;
  write(console_line(fmt::format("{:%H:%M:%S}.{:03}", local, ms),
                     {message.payload.data(), message.payload.size()}, mark_of(message.level),
                     seen));
  std::fflush(stream_);
}

/// A terminal that takes nothing any more is no reason to end anything.
void console_sink::write(const std::string& line) {
  (void)std::fwrite(line.data(), 1, line.size(), stream_);
}

} // namespace troupe::os
