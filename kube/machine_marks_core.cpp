#include "kube/machine_marks_core.hpp"

#include "kube/limits.hpp"
#include "kube/objects.hpp"

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::kube {

namespace {

namespace json = boost::json;

constexpr auto taint_key = "troupe/faulty";
constexpr auto taint_effect = "NoSchedule";

bool is_loopback(const std::string& address) {
  return address.rfind("127.", 0) == 0 || address == "::1" || address == "localhost";
}

bool is_tainted(const json::value& machine) {
  const auto& taints = items(machine, {"spec", "taints"});
  return std::any_of(taints.begin(), taints.end(), [](const json::value& t) {
    return text(t, {"key"}) == taint_key && text(t, {"effect"}) == taint_effect;
  });
}

bool is_cordoned(const json::value& machine) {
  return is_true(machine, {"spec", "unschedulable"});
}

json::object added(const char* path, json::value what) {
  return {{"op", "add"}, {"path", path}, {"value", std::move(what)}};
}

/// RFC 6902. The list of taints may be missing or null, and then cannot be added to.
std::string change_of(const json::value& machine, machine_mark how, const std::string& job) {
  json::array patch;
  patch.push_back(json::object{{"op", "test"},
                               {"path", "/metadata/resourceVersion"},
                               {"value", text(machine, {"metadata", "resourceVersion"})}});
  if (how == machine_mark::cordon) {
    patch.push_back(added("/spec/unschedulable", true));
    return json::serialize(patch);
  }
  const json::object taint{{"key", taint_key}, {"value", as_label(job)}, {"effect", taint_effect}};
  const auto* taints = member(machine, {"spec", "taints"});
  const bool has_list = taints != nullptr && taints->is_array();
  patch.push_back(has_list ? added("/spec/taints/-", taint)
                           : added("/spec/taints", json::array{taint}));
  return json::serialize(patch);
}

} // namespace

machine_marks_core::machine_marks_core(options o)
    : options_(std::move(o)), again_(limits::mark_again_first, limits::mark_again_most),
      random_(options_.seed) {}

machine_marks_core::effects machine_marks_core::mark_faulty(instant, const node_name& node,
                                                            const std::string& address,
                                                            const std::string& reason) {
  effects out;
  if (std::any_of(waiting_.begin(), waiting_.end(),
                  [&](const wanted& w) { return w.node == node; }))
    return out;
  const wanted w{node, address, reason, 0, {}, {}};
  // Pods that have no address yet would be found by none.
  if (address.empty()) {
    out.push_back(not_marked(w, "the master does not know its address any more"));
    return out;
  }
  if (waiting_.size() >= limits::marks_waiting_max) {
    out.push_back(
        not_marked(w, fmt::format("{} others wait to be marked", limits::marks_waiting_max)));
    return out;
  }
  waiting_.push_back(w);
  if (waiting_.size() == 1)
    begin(out);
  return out;
}

void machine_marks_core::begin(effects& out) {
  again_at_.reset();
  if (waiting_.empty())
    return;
  auto& first = waiting_.front();
  ++first.attempts;
  if (!first.machine.empty()) {
    step_ = step::machine;
    return ask(out, {"GET", "/api/v1/nodes/" + escaped(first.machine), "", ""});
  }
  step_ = step::pod;
  const auto which = is_loopback(first.address) ? "metadata.name=" + options_.own_pod
                                                : "status.podIP=" + first.address;
  ask(out, {"GET",
            fmt::format("/api/v1/namespaces/{}/pods?fieldSelector={}&limit={}",
                        escaped(options_.name_space), escaped(which), limits::pods_of_address_max),
            "", ""});
}

void machine_marks_core::ask(effects& out, api_request what) {
  asked_ = ++last_number_;
  out.push_back(call{*asked_, std::move(what)});
}

machine_marks_core::effects machine_marks_core::answered(instant now, std::uint64_t number,
                                                         const api_answer& a) {
  effects out;
  if (asked_ != number)
    return out;
  asked_.reset();
  if (is_passing(a) || a.status == 401) { // a token that was just replaced
    try_again(out, now, a);
  } else if (step_ == step::change) {
    take_change(out, now, a);
  } else if (a.status != 200) {
    give_up(out, in_words(a));
  } else if (step_ == step::pod) {
    take_pod(out, a);
  } else {
    take_machine(out, a);
  }
  return out;
}

/// Pods on one machine's own network have its address in common, and the machine as well. Of others
/// one that has ended may have had the address before.
void machine_marks_core::take_pod(effects& out, const api_answer& a) {
  auto& first = waiting_.front();
  const auto list = parsed(a.body);
  // Times are RFC 3339 in UTC, which sort as text.
  std::pair<bool, std::string> newest;
  if (list)
    for (const auto& pod : items(*list, {"items"})) {
      const auto machine = text(pod, {"spec", "nodeName"});
      const std::pair since{text(pod, {"status", "phase"}) == "Running",
                            text(pod, {"status", "startTime"})};
      if (machine.empty() || (!first.machine.empty() && since <= newest))
        continue;
      first.machine = machine;
      newest = since;
    }
  if (first.machine.empty())
    return give_up(out, fmt::format("no pod of namespace {} has the address {}",
                                    options_.name_space, first.address));
  step_ = step::machine;
  ask(out, {"GET", "/api/v1/nodes/" + escaped(first.machine), "", ""});
}

void machine_marks_core::take_machine(effects& out, const api_answer& a) {
  const auto machine = parsed(a.body);
  if (!machine)
    return give_up(out, "the API server's answer is no JSON");
  const bool taints = options_.how == machine_mark::taint;
  if (taints ? is_tainted(*machine) : is_cordoned(*machine))
    return done(out);
  step_ = step::change;
  ask(out, {"PATCH", "/api/v1/nodes/" + escaped(waiting_.front().machine),
            "application/json-patch+json", change_of(*machine, options_.how, options_.job)});
}

/// A failed test of a patch is a conflict (409) or an entity that cannot be processed (422), by the
/// server's version. An entity that never can runs into the bound of attempts.
void machine_marks_core::take_change(effects& out, instant now, const api_answer& a) {
  if (a.status == 200)
    return done(out);
  if (a.status == 409 || a.status == 422)
    return try_again(out, now, a);
  give_up(out, in_words(a));
}

void machine_marks_core::try_again(effects& out, instant now, const api_answer& a) {
  if (waiting_.front().attempts >= limits::mark_attempts_max)
    return give_up(out, fmt::format("{}, {} times", in_words(a), limits::mark_attempts_max));
  waiting_.front().trouble = in_words(a);
  auto wait = again_.next();
  wait += std::chrono::duration_cast<duration>(wait * random_.unit() / 2);
  if (a.retry_after)
    wait = std::max(wait, std::min<duration>(*a.retry_after, limits::mark_retry_after_most));
  again_at_ = now + wait;
}

machine_marks_core::effects machine_marks_core::tick(instant now) {
  effects out;
  if (again_at_ && now >= *again_at_)
    begin(out);
  return out;
}

machine_marks_core::effects machine_marks_core::ended() {
  effects out;
  asked_.reset();
  again_at_.reset();
  for (const auto& w : std::exchange(waiting_, {}))
    out.push_back(not_marked(w, w.trouble.empty() ? "the master has ended before"
                                                  : "the master has ended; " + w.trouble));
  return out;
}

std::string machine_marks_core::by_hand(const std::string& machine) const {
  const auto name = machine.empty() ? std::string("MACHINE") : machine;
  return options_.how == machine_mark::taint
             ? fmt::format("kubectl taint nodes {} {}={}:{}", name, taint_key,
                           as_label(options_.job), taint_effect)
             : "kubectl cordon " + name;
}

machine_marks_core::note machine_marks_core::not_marked(const wanted& w,
                                                        const std::string& why) const {
  return {{log::level::warning,
           "machine_not_marked",
           fmt::format("the machine of node {} ({}) could not be marked as faulty: {}; "
                       "other pods may be scheduled there until it is: {}",
                       w.node, w.reason, why, by_hand(w.machine)),
           {{"node", w.node}, {"reason", why}}}};
}

void machine_marks_core::give_up(effects& out, const std::string& why) {
  out.push_back(not_marked(waiting_.front(), why));
  waiting_.pop_front();
  again_.reset();
  begin(out);
}

void machine_marks_core::done(effects& out) {
  const auto& first = waiting_.front();
  const auto undo = options_.how == machine_mark::taint
                        ? fmt::format("kubectl taint nodes {} {}-", first.machine, taint_key)
                        : "kubectl uncordon " + first.machine;
  out.push_back(note{{log::level::notice,
                      "machine_marked",
                      fmt::format("the machine {} of node {} is marked as faulty ({}), so that "
                                  "nothing is scheduled there; once it is mended: {}",
                                  first.machine, first.node, first.reason, undo),
                      {{"node", first.node}, {"machine", first.machine}}}});
  waiting_.pop_front();
  again_.reset();
  begin(out);
}

} // namespace troupe::kube
