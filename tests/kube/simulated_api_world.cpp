// What happens to the objects of a simulated API server, and what its watches say of it.

#include "kube/objects.hpp"
#include "tests/kube/simulated_api_server.hpp"

#include <boost/json/serialize.hpp>

#include <algorithm>

namespace troupe::testing {

namespace {

namespace json = boost::json;

constexpr auto waits_for_dependents = "foregroundDeletion";

std::string event(const char* type, const json::value& object) {
  return json::serialize(json::object{{"type", type}, {"object", object}});
}

bool is_owned_by(const json::value& object, const std::string& uid) {
  const auto& owners = kube::items(object, {"metadata", "ownerReferences"});
  return std::any_of(owners.begin(), owners.end(),
                     [&](const json::value& o) { return kube::text(o, {"uid"}) == uid; });
}

void drop_if(json::value& object, const char* list, const std::function<bool(json::value&)>& is) {
  auto* all = metadata_of(object)[list].if_array();
  if (all != nullptr)
    all->erase(std::remove_if(all->begin(), all->end(), is), all->end());
}

} // namespace

/// The one place where an object changes. `next`: null removes it.
void simulated_api_server::commit(const std::string& kind, const std::string& key,
                                  json::value next) {
  auto& objects = kinds_[kind];
  const auto found = objects.find(key);
  const auto before = found == objects.end() ? json::value() : found->second;
  ++version_;
  if (!next.is_null())
    metadata_of(next)["resourceVersion"] = std::to_string(version_);
  history_.push_back({version_, kind, key, before, next});
  if (history_.size() > std::max<std::size_t>(history_max, 1)) {
    forgotten_ = history_.front().version;
    history_.pop_front();
  }
  if (next.is_null())
    objects.erase(key);
  else
    objects[key] = next;
  for (auto& [number, w] : watches_)
    tell(w, history_.back());
  if (next.is_null() && !before.is_null())
    collect_garbage(before);
}

void simulated_api_server::mark_deleted(const place& p, json::value object, std::int64_t grace,
                                        bool after_dependents) {
  const auto uid = kube::text(object, {"metadata", "uid"});
  const bool waits = after_dependents && !dependents_of(uid).empty();
  auto& metadata = metadata_of(object);
  if (waits) {
    auto& finalizers = metadata["finalizers"];
    if (!finalizers.is_array())
      finalizers.emplace_array();
    finalizers.get_array().emplace_back(waits_for_dependents);
  }
  const bool at_once = grace == 0 || needs_no_grace(p, object);
  if (at_once && !has_finalizers(object)) {
    commit(p.kind, p.key(), nullptr);
  } else if (!is_deleted(object)) {
    metadata["deletionTimestamp"] = timestamp(now_);
    metadata["deletionGracePeriodSeconds"] = at_once ? 0 : grace;
    commit(p.kind, p.key(), std::move(object));
  }
  if (waits)
    for (const auto& each : dependents_of(uid))
      mark_deleted(each, kinds_[each.kind][each.key()], 30, true);
}

std::vector<place> simulated_api_server::dependents_of(const std::string& uid) const {
  std::vector<place> all;
  for (const auto& [kind, objects] : kinds_)
    for (const auto& [key, object] : objects)
      if (is_owned_by(object, uid)) {
        place p;
        p.kind = kind;
        p.name_space = kube::text(object, {"metadata", "namespace"});
        p.name = kube::text(object, {"metadata", "name"});
        all.push_back(std::move(p));
      }
  return all;
}

void simulated_api_server::leave_dependents(const std::string& uid) {
  for (const auto& each : dependents_of(uid)) {
    auto object = kinds_[each.kind][each.key()];
    drop_if(object, "ownerReferences",
            [&](const json::value& o) { return kube::text(o, {"uid"}) == uid; });
    commit(each.kind, each.key(), std::move(object));
  }
}

bool simulated_api_server::has_owner(const json::value& object) const {
  const auto& owners = kube::items(object, {"metadata", "ownerReferences"});
  return std::any_of(owners.begin(), owners.end(), [this](const json::value& o) {
    const auto uid = kube::text(o, {"uid"});
    return std::any_of(kinds_.begin(), kinds_.end(), [&uid](const auto& kind) {
      return std::any_of(kind.second.begin(), kind.second.end(), [&uid](const auto& each) {
        return kube::text(each.second, {"metadata", "uid"}) == uid;
      });
    });
  });
}

void simulated_api_server::advance(instant to) {
  now_ = to;
  while (!to_collect_.empty() && to_collect_.front().first <= now_) {
    const auto uid = to_collect_.front().second;
    to_collect_.pop_front();
    for (const auto& each : dependents_of(uid)) {
      const auto& objects = kinds_[each.kind];
      const auto found = objects.find(each.key());
      // As the real one, it looks at the object again: it may have another owner by now.
      if (found != objects.end() && !has_owner(found->second))
        mark_deleted(each, found->second, 30, false);
    }
  }
}

/// Dependents go with the last of their owners; an owner that waits goes after its last dependent.
void simulated_api_server::collect_garbage(const json::value& gone) {
  const auto own_uid = kube::text(gone, {"metadata", "uid"});
  if (wrong.collected_after > duration::zero() && !dependents_of(own_uid).empty())
    to_collect_.emplace_back(now_ + wrong.collected_after, own_uid);
  else
    for (const auto& each : dependents_of(own_uid))
      if (kinds_[each.kind].count(each.key()) != 0)
        mark_deleted(each, kinds_[each.kind][each.key()], 30, false);
  std::vector<std::pair<std::string, std::string>> owners;
  for (const auto& reference : kube::items(gone, {"metadata", "ownerReferences"}))
    for (const auto& [kind, objects] : kinds_)
      for (const auto& [key, object] : objects)
        if (kube::text(object, {"metadata", "uid"}) == kube::text(reference, {"uid"}) &&
            is_deleted(object) && dependents_of(kube::text(reference, {"uid"})).empty())
          owners.emplace_back(kind, key);
  for (const auto& [kind, key] : owners) {
    auto owner = kinds_[kind][key];
    drop_if(owner, "finalizers", [](const json::value& f) { return f == waits_for_dependents; });
    commit(kind, key, has_finalizers(owner) ? owner : json::value());
  }
}

// ---- watches ----

simulated_api_server::opening simulated_api_server::watch(const kube::api_request& r) {
  const auto p = place_of(r.target);
  if (!p)
    return {0, refused(404, "NotFound", "the server could not find the requested resource")};
  ++counts["watch " + p->resource];
  if (instead)
    if (auto other = instead(r))
      return {0, *other};
  if (forbidden.count({"watch", p->resource}) != 0)
    return {0, refused(403, "Forbidden", p->resource + " is forbidden: cannot watch")};
  if (auto bad = fault("watch"))
    return {0, *bad};
  if (random_.chance(wrong.broken))
    return {0, refused(500, "InternalError", "etcdserver: leader changed")};
  const auto from = p->asked("resourceVersion");
  const bool anew = from.empty() || from == "0";
  const auto since = anew ? version_ : std::stoull(from);
  open_watch w{p->kind, p->name_space, selection(*p), !p->asked("allowWatchBookmarks").empty(), {}};
  if (!anew && (since < forgotten_ || random_.chance(wrong.too_old))) {
    const auto expired = refused(410, "Expired", "too old resource version: " + from);
    // A server says it before the watch or in it.
    if (random_.chance(0.5))
      return {0, expired};
    w.kind.clear();
    push(w, event("ERROR", *kube::parsed(expired.body)));
  } else if (anew) {
    tell_present(w);
  } else {
    for (const auto& e : history_)
      if (e.version > since)
        tell(w, e);
  }
  watches_[++last_watch_] = std::move(w);
  return {last_watch_, {200, "", {}}};
}

void simulated_api_server::tell_present(open_watch& w) {
  for (const auto& [key, object] : kinds_[w.kind])
    tell(w, {version_, w.kind, key, nullptr, object});
}

/// An object that comes to match a selector is new to its watches, and one that ceases to is gone.
void simulated_api_server::tell(open_watch& w, const change_event& e) {
  if (e.kind != w.kind || (!w.name_space.empty() && e.key.rfind(w.name_space + "/", 0) != 0))
    return;
  const bool was = !e.before.is_null() && w.which.matches(e.before);
  const bool is = !e.after.is_null() && w.which.matches(e.after);
  if (is)
    return push(w, event(was ? "MODIFIED" : "ADDED", e.after));
  if (!was)
    return;
  auto last = e.before;
  metadata_of(last)["resourceVersion"] = std::to_string(e.version);
  push(w, event("DELETED", last));
}

void simulated_api_server::push(open_watch& w, std::string line) {
  auto due = w.lines.empty() ? now_ : std::max(now_, w.lines.back().first);
  if (random_.chance(wrong.event_late))
    due += std::chrono::duration_cast<duration>(wrong.late_most * random_.unit());
  w.lines.emplace_back(due, line);
  if (random_.chance(wrong.event_twice))
    w.lines.emplace_back(due, std::move(line));
}

std::optional<std::string> simulated_api_server::line(std::uint64_t watch) {
  const auto found = watches_.find(watch);
  if (found == watches_.end() || found->second.lines.empty() ||
      found->second.lines.front().first > now_)
    return std::nullopt;
  auto text = std::move(found->second.lines.front().second);
  found->second.lines.pop_front();
  // A watch that was too old ends behind its ERROR.
  if (found->second.kind.empty())
    watches_.erase(found);
  return text;
}

bool simulated_api_server::is_open(std::uint64_t watch) const {
  return watches_.count(watch) != 0;
}

std::optional<instant> simulated_api_server::next_line() const {
  std::optional<instant> next;
  for (const auto& [number, w] : watches_)
    if (!w.lines.empty() && (!next || w.lines.front().first < *next))
      next = w.lines.front().first;
  return next;
}

void simulated_api_server::bookmark() {
  const json::object at{{"metadata", json::object{{"resourceVersion", std::to_string(version_)}}}};
  for (auto& [number, w] : watches_)
    if (w.bookmarks && !w.kind.empty())
      push(w, event("BOOKMARK", at));
}

void simulated_api_server::forget_history() {
  history_.clear();
  forgotten_ = version_;
}

// ---- the world beside requests ----

const json::value* simulated_api_server::find(const std::string& path) const {
  const auto p = place_of(path);
  const auto kind = p ? kinds_.find(p->kind) : kinds_.end();
  if (kind == kinds_.end())
    return nullptr;
  const auto found = kind->second.find(p->key());
  return found == kind->second.end() ? nullptr : &found->second;
}

void simulated_api_server::change(const std::string& path,
                                  const std::function<void(json::object&)>& how) {
  const auto* found = find(path);
  if (found == nullptr)
    return;
  auto next = *found;
  how(next.as_object());
  if (next != *found) {
    const auto p = *place_of(path);
    commit(p.kind, p.key(), std::move(next));
  }
}

void simulated_api_server::remove(const std::string& path) {
  if (find(path) == nullptr)
    return;
  const auto p = *place_of(path);
  commit(p.kind, p.key(), nullptr);
}

std::vector<const json::value*> simulated_api_server::all(const std::string& path) const {
  std::vector<const json::value*> found;
  const auto p = place_of(path);
  const auto kind = p ? kinds_.find(p->kind) : kinds_.end();
  if (kind != kinds_.end())
    for (const auto& [key, object] : kind->second)
      if (p->name_space.empty() || key.rfind(p->name_space + "/", 0) == 0)
        found.push_back(&object);
  return found;
}

} // namespace troupe::testing
