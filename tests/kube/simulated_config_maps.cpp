#include "tests/kube/simulated_config_maps.hpp"

#include "kube/objects.hpp"
#include "runtime/base/base64.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

namespace troupe::testing {

namespace {

namespace json = boost::json;

const std::string all_at = "/api/v1/namespaces/jobs/configmaps";
constexpr std::size_t data_max = 1u << 20;

std::size_t size_of_data(const json::object& object) {
  std::size_t size = 0;
  if (const auto* data = object.if_contains("data"))
    for (const auto& each : data->as_object())
      size += each.value().as_string().size();
  if (const auto* data = object.if_contains("binaryData"))
    for (const auto& each : data->as_object())
      size += bytes_of_base64(std::string(each.value().as_string()))->size();
  return size;
}

} // namespace

kube::api_answer refused_with(unsigned status, const std::string& message) {
  return {status, json::serialize(json::object{{"kind", "Status"}, {"message", message}}), {}};
}

kube::api_answer simulated_config_maps::answer(const kube::api_request& r) {
  asked.push_back(r);
  if (r.method == "POST" && r.target == all_at)
    return create(json::parse(r.body).as_object());
  if (r.target.rfind(all_at + "/", 0) != 0)
    return refused_with(404, "the server could not find the requested resource");
  const auto name = r.target.substr(all_at.size() + 1);
  const auto found = objects.find(name);
  if (found == objects.end())
    return refused_with(404, "configmaps \"" + name + "\" not found");
  if (r.method == "PUT")
    return update(name, json::parse(r.body).as_object());
  return {200, json::serialize(found->second), {}};
}

void simulated_config_maps::touch(json::object& object) {
  object["metadata"].as_object()["resourceVersion"] = std::to_string(++version_);
}

kube::api_answer simulated_config_maps::create(json::object object) {
  const auto name = kube::text(object, {"metadata", "name"});
  if (objects.count(name) != 0)
    return refused_with(409, "configmaps \"" + name + "\" already exists");
  if (kube::member(object, {"metadata", "resourceVersion"}) != nullptr)
    return refused_with(400, "resourceVersion should not be set on objects to be created");
  if (size_of_data(object) > data_max)
    return refused_with(422, "Too long: must have at most 1048576 bytes");
  touch(object);
  objects[name] = object;
  return {201, json::serialize(object), {}};
}

kube::api_answer simulated_config_maps::update(const std::string& name, json::object object) {
  auto& there = objects.at(name);
  if (kube::text(object, {"metadata", "resourceVersion"}) !=
      kube::text(there, {"metadata", "resourceVersion"}))
    return refused_with(409, "Operation cannot be fulfilled on configmaps \"" + name +
                                 "\": the object has been modified");
  if (size_of_data(object) > data_max)
    return refused_with(422, "Too long: must have at most 1048576 bytes");
  touch(object);
  there = object;
  return {200, json::serialize(object), {}};
}

} // namespace troupe::testing
