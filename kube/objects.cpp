#include "kube/objects.hpp"

#include <boost/json/parse.hpp>

#include <algorithm>
#include <cctype>

namespace troupe::kube {

namespace {

namespace json = boost::json;

/// https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/
constexpr std::size_t label_max = 63;

std::string text_of(const json::value* found) {
  const auto* string = found != nullptr ? found->if_string() : nullptr;
  return string != nullptr ? std::string(*string) : std::string();
}

} // namespace

std::optional<json::value> parsed(const std::string& body) {
  boost::system::error_code wrong;
  auto value = json::parse(body, wrong);
  return wrong ? std::nullopt : std::optional(std::move(value));
}

const json::value* member(const json::value& of, std::initializer_list<const char*> path) {
  const auto* at = &of;
  for (const char* name : path) {
    const auto* object = at->if_object();
    at = object != nullptr ? object->if_contains(name) : nullptr;
    if (at == nullptr)
      return nullptr;
  }
  return at;
}

std::string text(const json::value& of, std::initializer_list<const char*> path) {
  return text_of(member(of, path));
}

std::optional<std::int64_t> number(const json::value& of, std::initializer_list<const char*> path) {
  const auto* found = member(of, path);
  const auto* whole = found != nullptr ? found->if_int64() : nullptr;
  return whole != nullptr ? std::optional(*whole) : std::nullopt;
}

bool is_true(const json::value& of, std::initializer_list<const char*> path) {
  const auto* found = member(of, path);
  const auto* is = found != nullptr ? found->if_bool() : nullptr;
  return is != nullptr && *is;
}

const json::array& items(const json::value& of, std::initializer_list<const char*> path) {
  static const json::array none;
  const auto* found = member(of, path);
  const auto* list = found != nullptr ? found->if_array() : nullptr;
  return list != nullptr ? *list : none;
}

json::object& object_at(json::object& of, const char* name) {
  auto& value = of[name];
  return value.is_object() ? value.get_object() : value.emplace_object();
}

json::array& array_at(json::object& of, const char* name) {
  auto& value = of[name];
  return value.is_array() ? value.get_array() : value.emplace_array();
}

std::string label(const json::value& of, const std::string& key) {
  return text(of, {"metadata", "labels", key.c_str()});
}

std::string annotation(const json::value& of, const std::string& key) {
  return text(of, {"metadata", "annotations", key.c_str()});
}

std::string controller_of(const json::value& of) {
  for (const auto& owner : items(of, {"metadata", "ownerReferences"}))
    if (is_true(owner, {"controller"}))
      return text(owner, {"uid"});
  return {};
}

std::string elastic_job_of(const json::value& of) {
  for (const auto& owner : items(of, {"metadata", "ownerReferences"}))
    if (is_true(owner, {"controller"}) && text(owner, {"kind"}) == "ElasticJob")
      return text(owner, {"uid"});
  return {};
}

std::string key_of(const json::value& of) {
  const auto name_space = text(of, {"metadata", "namespace"});
  const auto name = text(of, {"metadata", "name"});
  return name_space.empty() ? name : name_space + "/" + name;
}

std::string as_label(const std::string& text) {
  std::string out;
  for (const unsigned char c : text.substr(0, label_max))
    out += std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' ? static_cast<char>(c) : '-';
  const auto is_end = [](unsigned char c) { return std::isalnum(c) != 0; };
  while (!out.empty() && !is_end(static_cast<unsigned char>(out.back())))
    out.pop_back();
  const auto first = std::find_if(out.begin(), out.end(), is_end);
  return {first, out.end()};
}

} // namespace troupe::kube
