#include "launch/worker/error_file.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include <charconv>

namespace troupe::launch {

namespace json = boost::json;

namespace {

const json::value* member(const json::value* of, const char* name) {
  const auto* object = of ? of->if_object() : nullptr;
  return object ? object->if_contains(name) : nullptr;
}

std::optional<std::string> text_of(const json::value* v) {
  if (!v || !v->is_string())
    return std::nullopt;
  return std::string(v->as_string().data(), v->as_string().size());
}

/// Seconds, as a number or as digits.
std::optional<std::int64_t> milliseconds_of(const json::value* v) {
  constexpr double longest = 1e11; // some thousand years
  double seconds = 0;
  if (const auto text = text_of(v)) {
    const auto [end, bad] = std::from_chars(text->data(), text->data() + text->size(), seconds);
    if (bad != std::errc{} || end != text->data() + text->size())
      return std::nullopt;
  } else if (v && v->is_number()) {
    seconds = v->to_number<double>();
  } else {
    return std::nullopt;
  }
  if (!(seconds > 0 && seconds < longest))
    return std::nullopt;
  return static_cast<std::int64_t>(seconds * 1'000);
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

} // namespace

std::optional<recorded_error> read_error_file(const std::string& content) {
  json::error_code bad;
  const auto root = json::parse(content, bad);
  if (bad)
    return std::nullopt;
  const auto* message = member(&root, "message");
  if (const auto flat = text_of(message))
    return recorded_error{first_line(*flat), *flat, milliseconds_of(member(&root, "timestamp"))};
  const auto said = text_of(member(message, "message"));
  if (!said)
    return std::nullopt;
  const auto* extra = member(message, "extraInfo");
  return recorded_error{first_line(*said), text_of(member(extra, "py_callstack")).value_or(*said),
                        milliseconds_of(member(extra, "timestamp"))};
}

std::string with_error_code(const std::string& content, std::int32_t code) {
  json::error_code bad;
  auto root = json::parse(content, bad);
  auto* object = bad ? nullptr : root.if_object();
  auto* message = object ? object->if_contains("message") : nullptr;
  if (!message || !message->is_object())
    return content;
  message->as_object()["errorCode"] = code;
  return json::serialize(root);
}

std::string make_error_file(const std::string& line, const std::string& traceback,
                            std::int64_t unix_time_ms, std::int32_t code) {
  const json::object extra{{"py_callstack", traceback},
                           {"timestamp", std::to_string(unix_time_ms / 1'000)}};
  const json::object message{{"message", line}, {"extraInfo", extra}, {"errorCode", code}};
  return json::serialize(json::object{{"message", message}});
}

} // namespace troupe::launch
