#include "kube/lease_core.hpp"

#include "kube/limits.hpp"
#include "kube/objects.hpp"

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::kube {

namespace {

namespace json = boost::json;

constexpr auto seconds_of(duration d) {
  return std::chrono::duration_cast<std::chrono::seconds>(d).count();
}

} // namespace

lease_core::lease_core(options o) : options_(std::move(o)), random_(options_.seed) {}

std::string lease_core::path() const {
  return fmt::format("/apis/coordination.k8s.io/v1/namespaces/{}/leases", options_.name_space);
}

lease_core::effects lease_core::tick(instant now, const std::string&) {
  effects out;
  check_own(out, now);
  if (!asked_ && (!started_ || (again_at_ && now >= *again_at_))) {
    started_ = true;
    asked_at_ = now;
    read(out);
  }
  return out;
}

void lease_core::check_own(effects& out, instant now) {
  if (!is_leader_ || now < renewed_ + limits::lease_renewed_within)
    return;
  is_leader_ = false;
  out.push_back(leads_no_more{});
}

std::optional<instant> lease_core::next_wakeup() const {
  auto at = asked_ ? std::nullopt : again_at_;
  if (is_leader_ && (!at || renewed_ + limits::lease_renewed_within < *at))
    at = renewed_ + limits::lease_renewed_within;
  return at;
}

void lease_core::read(effects& out) {
  again_at_.reset();
  asked_ = {++last_number_, step::read};
  out.push_back(call{last_number_, {"GET", path() + "/" + options_.name, "", ""}});
}

lease_core::effects lease_core::answered(instant now, const std::string& utc, std::uint64_t number,
                                         const api_answer& a) {
  effects out;
  if (!asked_ || asked_->first != number)
    return out;
  if (std::exchange(asked_, std::nullopt)->second == step::read)
    take_read(out, now, utc, a);
  else
    take_taken(out, now, a);
  check_own(out, now);
  return out;
}

void lease_core::take_read(effects& out, instant now, const std::string& utc, const api_answer& a) {
  if (a.status == 404)
    return write(out, utc, nullptr);
  const auto lease = a.status == 200 ? parsed(a.body) : std::nullopt;
  if (!lease) {
    tell(out, a);
    return again(now, limits::lease_again);
  }
  trouble_.clear();
  holder_ = text(*lease, {"spec", "holderIdentity"});
  if (holder_.empty() || holder_ == options_.holder)
    return write(out, utc, &*lease);
  if (is_leader_) {
    is_leader_ = false;
    out.push_back(leads_no_more{});
  }
  if (const auto at = text(*lease, {"metadata", "resourceVersion"}); at != version_) {
    version_ = at;
    unchanged_since_ = now;
  }
  const auto lasts = std::chrono::seconds(
      std::clamp<std::int64_t>(number(*lease, {"spec", "leaseDurationSeconds"}).value_or(0),
                               seconds_of(limits::lease_lasts), 3600));
  if (now - unchanged_since_ >= lasts)
    return write(out, utc, &*lease);
  again(now, limits::lease_again);
}

/// With the version that was read: of two that take it at once, one is refused.
void lease_core::write(effects& out, const std::string& utc, const json::value* lease) {
  json::object body = lease != nullptr
                          ? lease->as_object()
                          : json::object{{"apiVersion", "coordination.k8s.io/v1"},
                                         {"kind", "Lease"},
                                         {"metadata", json::object{{"name", options_.name}}}};
  json::object spec;
  if (const auto* old = body.if_contains("spec"); old != nullptr && old->is_object())
    spec = old->as_object();
  if (holder_ != options_.holder || lease == nullptr) {
    spec["acquireTime"] = utc;
    spec["leaseTransitions"] =
        lease == nullptr ? 0 : number(*lease, {"spec", "leaseTransitions"}).value_or(0) + 1;
  }
  spec["holderIdentity"] = options_.holder;
  spec["leaseDurationSeconds"] = seconds_of(limits::lease_lasts);
  spec["renewTime"] = utc;
  body["spec"] = std::move(spec);
  asked_ = {++last_number_, step::take};
  out.push_back(call{last_number_,
                     {lease != nullptr ? "PUT" : "POST",
                      lease != nullptr ? path() + "/" + options_.name : path(), "application/json",
                      json::serialize(body)}});
}

void lease_core::take_taken(effects& out, instant now, const api_answer& a) {
  if (a.status != 200 && a.status != 201) {
    if (a.status != 409)
      tell(out, a);
    return again(now, limits::lease_again);
  }
  // From when it was asked for: the answer may have been long on its way.
  renewed_ = asked_at_;
  holder_ = options_.holder;
  version_.clear();
  trouble_.clear();
  if (!std::exchange(is_leader_, true))
    out.push_back(leads{});
  again(now, limits::lease_renewed_every);
}

void lease_core::again(instant now, duration wait) {
  again_at_ = now + wait + std::chrono::duration_cast<duration>(wait * random_.unit() / 5);
}

void lease_core::tell(effects& out, const api_answer& a) {
  const auto why = kube::in_words(a);
  if (std::exchange(trouble_, why) == why)
    return;
  out.push_back(
      note{{log::level::warning,
            "lease_refused",
            fmt::format("the lease {}/{} cannot be had: {}; without it this operator "
                        "does nothing, and tries again every {} s",
                        options_.name_space, options_.name, why, seconds_of(limits::lease_again)),
            {{"lease", options_.name}}}});
}

std::string lease_core::in_words() const {
  if (is_leader_)
    return "leads";
  return holder_.empty() ? "asks for the lease" : "stands by: " + holder_ + " leads";
}

} // namespace troupe::kube
