#include "tests/kube/stored_objects.hpp"

#include "kube/objects.hpp"

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <ctime>

namespace troupe::testing {

namespace {

namespace json = boost::json;

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(at, begin), text.size());
    if (end > begin)
      parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string unescaped(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at)
    if (text[at] == '%' && at + 2 < text.size()) {
      out += static_cast<char>(std::stoi(text.substr(at + 1, 2), nullptr, 16));
      at += 2;
    } else {
      out += text[at];
    }
  return out;
}

std::pair<std::string, std::string> halves(const std::string& text) {
  const auto at = text.find('=');
  if (at == std::string::npos)
    return {text, ""};
  const auto rest = text.find_first_not_of('=', at); // "==" is "="
  return {text.substr(0, at), rest == std::string::npos ? "" : text.substr(rest)};
}

std::vector<std::pair<std::string, std::string>> equalities(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& each : split(text, ','))
    all.push_back(halves(each));
  return all;
}

std::string field(const json::value& object, const std::string& path) {
  const auto* at = &object;
  for (const auto& step : split(path, '.'))
    if (at = kube::member(*at, {step.c_str()}); at == nullptr)
      return {};
  return at->is_string() ? std::string(at->get_string()) : std::string();
}

bool is_lower(unsigned char c) {
  return std::islower(c) != 0 || std::isdigit(c) != 0;
}

/// https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
bool is_name(const std::string& name) {
  return !name.empty() && name.size() <= 253 && is_lower(static_cast<unsigned char>(name[0])) &&
         is_lower(static_cast<unsigned char>(name.back())) &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return is_lower(c) || c == '-' || c == '.'; });
}

} // namespace

std::string place::asked(const std::string& key) const {
  const auto found = query.find(key);
  return found == query.end() ? std::string() : found->second;
}

std::optional<place> place_of(const std::string& target) {
  place p;
  const auto mark = target.find('?');
  if (mark != std::string::npos)
    for (const auto& each : split(target.substr(mark + 1), '&')) {
      const auto at = each.find('=');
      p.query[each.substr(0, at)] = at == std::string::npos ? "" : unescaped(each.substr(at + 1));
    }
  auto parts = split(target.substr(0, mark), '/');
  for (auto& part : parts)
    part = unescaped(part);
  const std::size_t prefix = !parts.empty() && parts[0] == "apis" ? 3 : 2;
  if (parts.size() <= prefix || (parts[0] != "api" && parts[0] != "apis"))
    return std::nullopt;
  for (std::size_t n = 0; n < prefix; ++n)
    p.kind += "/" + parts[n];
  parts.erase(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(prefix));
  if (parts.size() > 2 && parts[0] == "namespaces") {
    p.name_space = parts[1];
    parts.erase(parts.begin(), parts.begin() + 2);
  }
  if (parts.size() > 3)
    return std::nullopt;
  p.resource = parts[0];
  p.kind += "/" + p.resource;
  p.name = parts.size() > 1 ? parts[1] : "";
  p.subresource = parts.size() > 2 ? parts[2] : "";
  return p;
}

selection::selection(const place& p)
    : labels_(equalities(p.asked("labelSelector"))), fields_(equalities(p.asked("fieldSelector"))) {
}

bool selection::matches(const json::value& object) const {
  const auto all = [&](const auto& wanted, auto read) {
    return std::all_of(wanted.begin(), wanted.end(), [&](const auto& w) {
      // "a" alone: it is there, whatever its value.
      const auto value = read(object, w.first);
      return w.second.empty() ? !value.empty() : value == w.second;
    });
  };
  return all(labels_, kube::label) && all(fields_, field);
}

kube::api_answer refused(unsigned status, const std::string& reason, const std::string& message) {
  return answered(status, json::object{{"kind", "Status"},
                                       {"apiVersion", "v1"},
                                       {"status", "Failure"},
                                       {"message", message},
                                       {"reason", reason},
                                       {"code", status}});
}

kube::api_answer answered(unsigned status, const json::value& body) {
  return {status, json::serialize(body), {}};
}

std::optional<std::string> wrong_metadata(const json::value& object) {
  const auto name = kube::text(object, {"metadata", "name"});
  if (!is_name(name))
    return fmt::format("metadata.name: Invalid value: \"{}\": a lowercase RFC 1123 subdomain",
                       name);
  const auto* labels = kube::member(object, {"metadata", "labels"});
  if (labels != nullptr && labels->is_object())
    for (const auto& [key, value] : labels->get_object())
      if (!value.is_string() ||
          kube::as_label(std::string(value.get_string())) != value.get_string())
        return fmt::format("metadata.labels: Invalid value of {}", std::string(key));
  return std::nullopt;
}

std::string timestamp(instant at) {
  constexpr std::time_t new_year_of_2026 = 1'767'225'600;
  const auto seconds =
      new_year_of_2026 +
      std::chrono::duration_cast<std::chrono::seconds>(at.time_since_epoch()).count();
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

json::object& metadata_of(json::value& object) {
  auto& metadata = object.as_object()["metadata"];
  return metadata.is_object() ? metadata.get_object() : metadata.emplace_object();
}

bool has_finalizers(const json::value& object) {
  return !kube::items(object, {"metadata", "finalizers"}).empty();
}

bool is_deleted(const json::value& object) {
  return kube::member(object, {"metadata", "deletionTimestamp"}) != nullptr;
}

bool needs_no_grace(const place& p, const json::value& object) {
  const auto phase = kube::text(object, {"status", "phase"});
  return p.kind != "/api/v1/pods" || kube::text(object, {"spec", "nodeName"}).empty() ||
         phase == "Succeeded" || phase == "Failed";
}

} // namespace troupe::testing
