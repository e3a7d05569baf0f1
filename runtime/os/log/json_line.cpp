#include "runtime/os/log/json_line.hpp"

#include "runtime/os/log/printable.hpp"

#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>
#include <fmt/chrono.h>

#include <cmath>
#include <map>

namespace troupe::os {

namespace {

using std::chrono::duration_cast;

std::string quoted(const std::string& text) {
  return boost::json::serialize(boost::json::string(valid_utf8(text)));
}

/// Numbers as people write them: the library's own would be 2.671959E0.
std::string to_json(const log::value& v) {
  if (const auto* text = std::get_if<std::string>(&v))
    return quoted(*text);
  if (const auto* whole = std::get_if<std::int64_t>(&v))
    return fmt::format("{}", *whole);
  if (const auto* fraction = std::get_if<double>(&v))
    // JSON has no other word for what is not a number.
    return std::isfinite(*fraction) ? fmt::format("{}", *fraction) : "null";
  return fmt::format("{}", std::get<bool>(v));
}

std::string fields_of(const log::event& event) {
  std::map<std::string, std::string> fields; // the last one of a name, as readers of JSON have it
  for (const auto& [name, value] : event.fields)
    fields[name] = to_json(value);
  std::string text;
  for (const auto& [name, value] : fields)
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", quoted(name), value);
  return text;
}

std::string told(const char* key, const std::string& text) {
  return text.empty() ? "" : fmt::format(R"("{}":{},)", key, quoted(text));
}

std::string utc(std::chrono::system_clock::time_point wall) {
  const auto us = duration_cast<std::chrono::microseconds>(wall.time_since_epoch()).count();
  constexpr auto per_second = 1'000'000;
  const auto seconds = std::chrono::system_clock::to_time_t(wall);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", fmt::gmtime(seconds), us % per_second);
}

} // namespace

std::string json_line(const log_origin& origin, const std::string& component,
                      const log::event& event, std::chrono::system_clock::time_point wall,
                      instant monotonic) {
  const auto ns = duration_cast<std::chrono::nanoseconds>(monotonic.time_since_epoch()).count();
  return fmt::format(R"({{"time":"{}","level":"{}",{}{}"component":{},"event":{},"text":{},)"
                     R"("fields":{{{}}},"monotonic_ns":{}}})",
                     utc(wall), log::to_string(event.severity), told("job", origin.job),
                     told("node", origin.node), quoted(component), quoted(event.name),
                     quoted(event.text), fields_of(event), ns);
}

} // namespace troupe::os
