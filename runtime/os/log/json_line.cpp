#include "runtime/os/log/json_line.hpp"

#include "runtime/os/log/printable.hpp"

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <fmt/chrono.h>

#include <cmath>

namespace troupe::os {

namespace {

using std::chrono::duration_cast;

boost::json::value to_json(const log::value& v) {
  if (const auto* text = std::get_if<std::string>(&v))
    return boost::json::value(valid_utf8(*text));
  if (const auto* whole = std::get_if<std::int64_t>(&v))
    return *whole;
  if (const auto* fraction = std::get_if<double>(&v))
    // JSON has no other word for what is not a number.
    return std::isfinite(*fraction) ? boost::json::value(*fraction) : boost::json::value(nullptr);
  return std::get<bool>(v);
}

std::string utc(std::chrono::system_clock::time_point wall) {
  const auto us = duration_cast<std::chrono::microseconds>(wall.time_since_epoch()).count();
  constexpr auto per_second = 1'000'000;
  const auto seconds = std::chrono::system_clock::to_time_t(wall);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", fmt::gmtime(seconds), us % per_second);
}

} // namespace

std::string json_line(const std::string& component, const log::event& event,
                      std::chrono::system_clock::time_point wall, instant monotonic) {
  boost::json::object fields;
  for (const auto& [name, value] : event.fields)
    fields[valid_utf8(name)] = to_json(value);
  const auto ns = duration_cast<std::chrono::nanoseconds>(monotonic.time_since_epoch()).count();
  return boost::json::serialize(boost::json::object{
      {"time", utc(wall)},
      {"monotonic_ns", ns},
      {"level", log::to_string(event.severity)},
      {"component", valid_utf8(component)},
      {"event", valid_utf8(event.name)},
      {"text", valid_utf8(event.text)},
      {"fields", std::move(fields)},
  });
}

} // namespace troupe::os
