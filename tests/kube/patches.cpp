#include "tests/kube/patches.hpp"

#include <charconv>
#include <vector>

namespace troupe::testing {

namespace {

namespace json = boost::json;

enum class null_is : bool { a_removal, a_value };

void merge(json::value& target, const json::value& patch, null_is null) {
  const auto* changes = patch.if_object();
  if (changes == nullptr) {
    target = patch;
    return;
  }
  if (!target.is_object())
    target.emplace_object();
  auto& object = target.get_object();
  for (const auto& [key, value] : *changes)
    if (value.is_null() && null == null_is::a_removal)
      object.erase(key);
    else
      merge(object[key], value, null);
}

/// RFC 6901: "/a~1b/0" is {"a/b", "0"}.
std::vector<std::string> steps_of(const std::string& pointer) {
  std::vector<std::string> steps;
  for (std::size_t at = 0; at < pointer.size(); ++at) {
    if (pointer[at] == '/') {
      steps.emplace_back();
    } else if (steps.empty()) {
      return {};
    } else if (pointer[at] == '~' && at + 1 < pointer.size()) {
      steps.back() += pointer[++at] == '1' ? '/' : '~';
    } else {
      steps.back() += pointer[at];
    }
  }
  return steps;
}

std::optional<std::size_t> index_of(const std::string& step) {
  std::size_t index = 0;
  const auto* end = step.data() + step.size();
  const auto [stop, wrong] = std::from_chars(step.data(), end, index);
  return wrong == std::errc() && stop == end ? std::optional(index) : std::nullopt;
}

json::value* child(json::value* of, const std::string& step) {
  if (auto* object = of->if_object())
    return object->if_contains(step);
  auto* array = of->if_array();
  const auto index = index_of(step);
  return array != nullptr && index && *index < array->size() ? &(*array)[*index] : nullptr;
}

bool add(json::value& parent, const std::string& step, const json::value& value) {
  if (auto* object = parent.if_object()) {
    (*object)[step] = value;
    return true;
  }
  auto* array = parent.if_array();
  if (array == nullptr)
    return false;
  const auto index = step == "-" ? std::optional(array->size()) : index_of(step);
  if (!index || *index > array->size())
    return false;
  array->insert(array->begin() + static_cast<std::ptrdiff_t>(*index), value);
  return true;
}

void remove(json::value& parent, const std::string& step) {
  if (auto* object = parent.if_object())
    object->erase(step);
  else
    parent.get_array().erase(parent.get_array().begin() +
                             static_cast<std::ptrdiff_t>(*index_of(step)));
}

/// False: the path is missing, or the test has failed.
bool act(json::value& target, const json::object& operation) {
  const auto op = operation.at("op").as_string();
  auto steps = steps_of(std::string(operation.at("path").as_string()));
  if (steps.empty())
    return false;
  const auto last = steps.back();
  steps.pop_back();
  auto* parent = &target;
  for (const auto& step : steps)
    if (parent = child(parent, step); parent == nullptr)
      return false;
  if (op == "add")
    return add(*parent, last, operation.at("value"));
  auto* at = child(parent, last);
  if (at == nullptr)
    return false;
  if (op == "remove")
    remove(*parent, last);
  else if (op == "replace")
    *at = operation.at("value");
  else
    return op == "test" && *at == operation.at("value");
  return true;
}

} // namespace

void merge_patch(json::value& target, const json::value& patch) {
  merge(target, patch, null_is::a_removal);
}

void apply_patch(json::value& target, const json::value& patch) {
  merge(target, patch, null_is::a_value);
}

std::optional<std::string> json_patch(json::value& target, const json::value& patch) {
  auto next = target;
  const auto* operations = patch.if_array();
  if (operations == nullptr)
    return "the body is no list of operations";
  for (const auto& each : *operations) {
    const auto* operation = each.if_object();
    const auto has = [&](const char* key) {
      return operation != nullptr && operation->contains(key);
    };
    if (!has("op") || !has("path") || (!has("value") && operation->at("op") != "remove"))
      return "an operation lacks op, path or value";
    if (!act(next, *operation))
      return std::string(operation->at("op").as_string()) + " fails at " +
             std::string(operation->at("path").as_string());
  }
  target = std::move(next);
  return std::nullopt;
}

} // namespace troupe::testing
