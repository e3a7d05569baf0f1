#include "runtime/base/log.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"

#include <fmt/format.h>

namespace troupe {

const char* to_string(errc code) {
  switch (code) {
  case errc::invalid:
    return "invalid";
  case errc::absent:
    return "absent";
  case errc::refused:
    return "refused";
  case errc::unavailable:
    return "unavailable";
  case errc::overloaded:
    return "overloaded";
  case errc::closed:
    return "closed";
  }
  return "unknown";
}

double milliseconds_of(duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

std::string in_words(duration d) {
  const double ms = milliseconds_of(d);
  if (ms < 1.0)
    return fmt::format("{:.0f} µs", ms * 1000.0);
  if (ms < 100.0)
    return fmt::format("{:.1f} ms", ms);
  if (ms < 1'000.0)
    return fmt::format("{:.0f} ms", ms);
  if (ms < 120'000.0)
    return fmt::format("{:.1f} s", ms / 1000.0);
  const auto seconds = static_cast<long>(ms / 1000.0);
  if (seconds >= 7'200)
    return fmt::format("{} h {} min", seconds / 3'600, seconds / 60 % 60);
  if (seconds % 60 == 0)
    return fmt::format("{} min", seconds / 60);
  return fmt::format("{} min {} s", seconds / 60, seconds % 60);
}

namespace log {

const char* to_string(level l) {
  switch (l) {
  case level::debug:
    return "debug";
  case level::info:
    return "info";
  case level::notice:
    return "notice";
  case level::warning:
    return "warning";
  case level::error:
    return "error";
  }
  return "unknown";
}

} // namespace log
} // namespace troupe
