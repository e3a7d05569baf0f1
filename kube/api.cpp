#include "kube/api.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace troupe::kube {

namespace {

constexpr std::size_t words_max = 300;

std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  if (text.size() > words_max)
    text = text.substr(0, words_max) + "…";
  return text;
}

/// Of a Status object; empty if it is none.
std::string message_of(const std::string& body) {
  boost::system::error_code wrong;
  const auto parsed = boost::json::parse(body, wrong);
  const auto* object = wrong ? nullptr : parsed.if_object();
  const auto* message = object != nullptr ? object->if_contains("message") : nullptr;
  const auto* text = message != nullptr ? message->if_string() : nullptr;
  return text != nullptr ? std::string(*text) : std::string();
}

} // namespace

bool is_passing(const api_answer& a) {
  return a.status == 0 || a.status == 429 || a.status >= 500;
}

std::string in_words(const api_answer& a) {
  if (a.status == 0)
    return one_line(a.body);
  const auto message = message_of(a.body);
  return message.empty() ? fmt::format("status {}", a.status)
                         : fmt::format("{} (status {})", one_line(message), a.status);
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const unsigned char c : text)
    if (std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_' || c == '~')
      out += static_cast<char>(c);
    else
      out += fmt::format("%{:02X}", c);
  return out;
}

} // namespace troupe::kube
