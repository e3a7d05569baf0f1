#include "tests/kube/simulated_api_server.hpp"

#include "kube/objects.hpp"
#include "tests/kube/patches.hpp"

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace troupe::testing {

namespace {

namespace json = boost::json;

std::string verb_of(const kube::api_request& r, const place& p) {
  if (r.method == "GET")
    return p.asked("watch").empty() ? (p.name.empty() ? "list" : "get") : "watch";
  if (r.method == "POST")
    return "create";
  return r.method == "PUT" ? "update" : r.method == "PATCH" ? "patch" : "delete";
}

bool changes_something(const std::string& verb) {
  return verb != "get" && verb != "list" && verb != "watch";
}

kube::api_answer not_found(const place& p) {
  return refused(404, "NotFound", fmt::format("{} \"{}\" not found", p.resource, p.name));
}

kube::api_answer conflict(const place& p, const std::string& why) {
  return refused(
      409, "Conflict",
      fmt::format("Operation cannot be fulfilled on {} \"{}\": {}", p.resource, p.name, why));
}

kube::api_answer invalid(const place& p, const std::string& why) {
  return refused(422, "Invalid", fmt::format("{} \"{}\" is invalid: {}", p.resource, p.name, why));
}

constexpr auto too_old = "The resourceVersion is too old";

} // namespace

std::optional<kube::api_answer> simulated_api_server::fault(const std::string& verb) {
  if (random_.chance(wrong.unheard))
    return kube::api_answer{0, "connection refused", {}};
  if (random_.chance(wrong.too_many)) {
    auto a = refused(429, "TooManyRequests", "too many requests, please try again later");
    a.retry_after = std::chrono::seconds(1 + random_.below(3));
    return a;
  }
  if (changes_something(verb) && random_.chance(wrong.conflict))
    return refused(409, "Conflict", "the object has been modified; please apply your changes");
  return std::nullopt;
}

kube::api_answer simulated_api_server::answer(const kube::api_request& r) {
  const auto p = place_of(r.target);
  if (!p)
    return refused(404, "NotFound", "the server could not find the requested resource");
  const auto verb = verb_of(r, *p);
  ++counts[verb + " " + p->resource];
  if (instead)
    if (auto other = instead(r))
      return *other;
  if (forbidden.count({verb, p->resource}) != 0)
    return refused(403, "Forbidden",
                   fmt::format("{} is forbidden: User \"system:serviceaccount:x\" cannot {} "
                               "resource \"{}\"",
                               p->resource, verb, p->resource));
  if (auto bad = fault(verb))
    return *bad;
  const bool broken = random_.chance(wrong.broken);
  if (broken && random_.chance(0.5))
    return refused(500, "InternalError", "etcdserver: leader changed");
  auto a = perform(r);
  if (broken)
    return refused(500, "InternalError", "etcdserver: request timed out");
  if (random_.chance(wrong.unanswered))
    return {0, "no answer within 10 s", {}};
  return a;
}

kube::api_answer simulated_api_server::perform(const kube::api_request& r) {
  const auto p = *place_of(r.target);
  if (r.method == "GET")
    return p.name.empty() ? list(p) : get(p);
  const auto body = r.body.empty() ? json::value(json::object()) : kube::parsed(r.body);
  if (!body)
    return refused(400, "BadRequest", "the body is no JSON");
  if (r.method == "DELETE" && !p.name.empty())
    return erase(p, *body);
  if (r.method == "PATCH" && !p.name.empty())
    return patch(p, r);
  if (!body->is_object())
    return refused(400, "BadRequest", "the body is no object");
  if (r.method == "POST" && p.name.empty())
    return create(p, *body);
  if (r.method == "PUT" && !p.name.empty())
    return put(p, *body);
  return refused(405, "MethodNotAllowed", r.method + " is not supported here");
}

kube::api_answer simulated_api_server::get(const place& p) const {
  const auto kind = kinds_.find(p.kind);
  const auto* object = kind == kinds_.end() || kind->second.count(p.key()) == 0
                           ? nullptr
                           : &kind->second.at(p.key());
  return object == nullptr ? not_found(p) : answered(200, *object);
}

kube::api_answer simulated_api_server::list(const place& p) {
  page rest{{}, version_};
  if (const auto token = p.asked("continue"); token.empty()) {
    const selection which(p);
    for (const auto& [key, object] : kinds_[p.kind])
      if ((p.name_space.empty() || key.rfind(p.name_space + "/", 0) == 0) && which.matches(object))
        rest.rest.push_back(object);
  } else {
    const auto found = pages_.find(token);
    if (found == pages_.end() || random_.chance(wrong.too_old))
      return refused(410, "Expired", too_old);
    rest = found->second;
  }
  const auto limit = p.asked("limit");
  const auto size =
      std::min(rest.rest.size(), limit.empty() ? rest.rest.size() : std::stoul(limit));
  const auto end = rest.rest.begin() + static_cast<std::ptrdiff_t>(size);
  json::object metadata{{"resourceVersion", std::to_string(rest.version)}};
  json::array items(rest.rest.begin(), end);
  rest.rest.erase(rest.rest.begin(), end);
  if (!rest.rest.empty()) {
    const auto token = "page-" + std::to_string(++last_page_);
    metadata["continue"] = token;
    pages_[token] = std::move(rest);
    if (pages_.size() > 100)
      pages_.erase(pages_.begin());
  }
  return answered(200, json::object{{"kind", "List"}, {"metadata", metadata}, {"items", items}});
}

kube::api_answer simulated_api_server::create(const place& at, json::value object) {
  auto p = at;
  auto& metadata = metadata_of(object);
  p.name = kube::text(object, {"metadata", "name"});
  if (p.name.empty()) {
    const auto prefix = kube::text(object, {"metadata", "generateName"});
    if (prefix.empty())
      return invalid(p, "metadata.name: Required value: name or generateName is required");
    p.name = fmt::format("{}{:05x}", prefix, random_.below(0x100000));
    metadata["name"] = p.name;
  }
  if (!p.name_space.empty()) {
    if (kube::text(object, {"metadata", "namespace"}) != "" &&
        kube::text(object, {"metadata", "namespace"}) != p.name_space)
      return refused(400, "BadRequest", "the namespace of the object does not match the request");
    metadata["namespace"] = p.name_space;
  }
  if (const auto why = wrong_metadata(object))
    return invalid(p, *why);
  if (kinds_[p.kind].count(p.key()) != 0)
    return refused(409, "AlreadyExists",
                   fmt::format("{} \"{}\" already exists", p.resource, p.name));
  metadata["uid"] = fmt::format("uid-{}", ++last_uid_);
  metadata["creationTimestamp"] = timestamp(now_);
  metadata["generation"] = 1;
  metadata.erase("deletionTimestamp");
  object.get_object().erase("status");
  if (p.kind == "/api/v1/pods")
    object.get_object()["status"] = json::object{{"phase", "Pending"}};
  commit(p.kind, p.key(), std::move(object));
  return answered(201, kinds_[p.kind][p.key()]);
}

kube::api_answer simulated_api_server::put(const place& p, const json::value& object) {
  if (kinds_[p.kind].count(p.key()) == 0)
    return not_found(p);
  const auto version = kube::text(object, {"metadata", "resourceVersion"});
  if (!version.empty() &&
      version != kube::text(kinds_[p.kind][p.key()], {"metadata", "resourceVersion"}))
    return conflict(p, "the object has been modified; please apply your changes to the latest "
                       "version and try again");
  return store(p, object, 200);
}

kube::api_answer simulated_api_server::patch(const place& p, const kube::api_request& r) {
  const auto change = kube::parsed(r.body);
  if (!change)
    return refused(400, "BadRequest", "the body is no JSON");
  if (r.content_type == "application/apply-patch+yaml")
    return apply(p, *change);
  if (kinds_[p.kind].count(p.key()) == 0)
    return not_found(p);
  auto next = kinds_[p.kind][p.key()];
  const auto version = kube::text(next, {"metadata", "resourceVersion"});
  if (r.content_type == "application/json-patch+json") {
    if (const auto why = json_patch(next, *change))
      return refused(422, "Invalid", "the server rejected our request: " + *why);
  } else if (r.content_type == "application/merge-patch+json") {
    merge_patch(next, *change);
    if (kube::text(next, {"metadata", "resourceVersion"}) != version)
      return conflict(p, "the object has been modified");
  } else {
    return refused(415, "UnsupportedMediaType", "no such patch: " + r.content_type);
  }
  return store(p, std::move(next), 200);
}

kube::api_answer simulated_api_server::apply(const place& p, const json::value& object) {
  if (p.asked("fieldManager").empty())
    return refused(400, "BadRequest",
                   "PatchOptions.meta.k8s.io is invalid: fieldManager: "
                   "Required value: is required for apply patch");
  if (!object.is_object())
    return refused(400, "BadRequest", "the body is no object");
  auto next = object;
  if (kinds_[p.kind].count(p.key()) == 0) {
    if (!p.subresource.empty())
      return not_found(p);
    metadata_of(next)["name"] = p.name;
    return create(p, std::move(next));
  }
  next = kinds_[p.kind][p.key()];
  apply_patch(next, object);
  return store(p, std::move(next), 200);
}

/// What a client may not change stays as it is, and a subresource changes the status and no more.
kube::api_answer simulated_api_server::store(const place& p, json::value next, unsigned status) {
  const auto& before = kinds_[p.kind][p.key()].as_object();
  if (!next.is_object())
    return refused(400, "BadRequest", "the body is no object");
  if (!p.subresource.empty()) {
    auto object = before;
    object["status"] = next.get_object()["status"];
    next = std::move(object);
  } else if (before.contains("status")) {
    next.get_object()["status"] = before.at("status");
  }
  auto& metadata = metadata_of(next);
  for (const char* fixed : {"name", "namespace", "uid", "creationTimestamp", "deletionTimestamp",
                            "deletionGracePeriodSeconds", "generation", "resourceVersion"})
    if (const auto* value = before.at("metadata").as_object().if_contains(fixed))
      metadata[fixed] = *value;
    else
      metadata.erase(fixed);
  if (const auto why = wrong_metadata(next))
    return invalid(p, *why);
  const auto* spec = next.get_object().if_contains("spec");
  const auto* spec_before = before.if_contains("spec");
  if (spec != nullptr && (spec_before == nullptr || *spec != *spec_before))
    metadata["generation"] = kube::number(next, {"metadata", "generation"}).value_or(0) + 1;
  if (is_deleted(next) && !has_finalizers(next) && needs_no_grace(p, next)) {
    commit(p.kind, p.key(), nullptr);
    return answered(status, next);
  }
  if (next != before)
    commit(p.kind, p.key(), std::move(next));
  return answered(status, kinds_[p.kind][p.key()]);
}

kube::api_answer simulated_api_server::erase(const place& p, const json::value& options) {
  auto& kind = kinds_[p.kind];
  const auto found = kind.find(p.key());
  if (found == kind.end())
    return not_found(p);
  auto object = found->second;
  for (const char* which : {"uid", "resourceVersion"})
    if (const auto must = kube::text(options, {"preconditions", which});
        !must.empty() && must != kube::text(object, {"metadata", which}))
      return conflict(p,
                      fmt::format("the {} in the precondition ({}) does not match", which, must));
  auto policy = kube::text(options, {"propagationPolicy"});
  if (policy.empty())
    policy = p.asked("propagationPolicy");
  auto grace = kube::number(options, {"gracePeriodSeconds"});
  if (const auto asked = p.asked("gracePeriodSeconds"); !grace && !asked.empty())
    grace = std::stoll(asked);
  if (policy == "Orphan")
    leave_dependents(kube::text(object, {"metadata", "uid"}));
  mark_deleted(p, std::move(object), grace.value_or(30), policy == "Foreground");
  return answered(200, json::object{{"kind", "Status"}, {"status", "Success"}});
}

} // namespace troupe::testing
