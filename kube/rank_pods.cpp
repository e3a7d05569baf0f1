#include "kube/rank_pods.hpp"

#include "kube/limits.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace troupe::kube {

namespace {

using act = rank_pods::action::what;

bool is_live(const node_pod& pod) {
  return pod.phase != pod_phase::ended && !pod.is_terminating;
}

std::optional<instant> earlier(std::optional<instant> a, std::optional<instant> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

} // namespace

rank_pods::rank_pods(rules r)
    : rules_(r), again_(limits::pod_again_first, limits::pod_again_most) {}

void rank_pods::want(bool wanted) {
  // What earlier pods have used up is known before it is known that the rank is wanted.
  if (wanted == std::exchange(wanted_, wanted) || !begun_)
    return;
  if (making_ && !making_->may_be_there)
    making_.reset();
  done_ = given_up_ = false;
  restarts_ = 0;
  memory_.clear();
  told_.clear();
  forget_row();
  not_before_ = {};
}

void rank_pods::try_again(instant now) {
  if (!std::exchange(given_up_, false))
    return;
  restarts_ = 0;
  not_before_ = now;
}

void rank_pods::end() {
  over_ = true;
  want(false);
}

// ---- what is known ----

rank_pods::known& rank_pods::known_as(instant now, const node_pod& pod) {
  auto& k = pods_[pod.uid];
  if (k.pod.uid.empty()) {
    k.since = now;
    newest_id_ = std::max(newest_id_, pod.id);
    relaunches_ = std::max(relaunches_, pod.relaunches);
    restarts_ = std::max(restarts_, pod.restarts);
  }
  const bool was_terminating = k.pod.is_terminating;
  k.pod = pod;
  // What is told late does not bring it back to life.
  k.pod.is_terminating = was_terminating || pod.is_terminating;
  if (k.pod.phase == pod_phase::running && !k.runs_since) {
    k.runs_since = now;
    may_go_anywhere_ = false;
  }
  return k;
}

std::optional<rank_pods::verdict> rank_pods::is(instant now, const node_pod& pod, bool watched) {
  const bool was_made = making_ && making_->name == pod.name;
  if (was_made)
    making_.reset();
  if (was_gone(pod.uid)) {
    if (!was_made || !is_kept() || live() != nullptr)
      return std::nullopt;
    return judged(now, pod, pod_end::taken, "it was deleted");
  }
  const auto found = pods_.find(pod.uid);
  const bool is_new = found == pods_.end();
  if (!is_new && found->second.is_watched && !watched) {
    found->second.look_at.reset();
    return std::nullopt; // the watch knows better
  }
  const bool is_old = is_new && pod.id < newest_id_;
  auto& k = known_as(now, pod);
  k.is_watched = k.is_watched || watched;
  k.look_at = watched ? std::nullopt : std::optional(now + limits::pod_unseen_max);
  if (!begun_ || k.is_over || is_live(k.pod))
    return std::nullopt;
  if (is_old) { // of an earlier life of the rank
    k.is_over = true;
    return std::nullopt;
  }
  return concluded(now, k);
}

std::optional<rank_pods::verdict> rank_pods::begin(instant now) {
  if (std::exchange(begun_, true))
    return std::nullopt;
  known* newest = nullptr;
  for (auto& [uid, k] : pods_) {
    k.is_over = !is_live(k.pod);
    if (newest == nullptr || k.pod.id > newest->pod.id)
      newest = &k;
  }
  return newest != nullptr && newest->is_over ? concluded(now, *newest) : std::nullopt;
}

std::optional<rank_pods::verdict> rank_pods::concluded(instant now, known& k) {
  const bool is_left = k.ends_as != pod_end::taken;
  may_go_anywhere_ |= made_anew_at(k).has_value() && k.lost_reason.empty();
  if (k.pod.phase == pod_phase::ended && !is_left)
    return over(now, k, k.pod.end, k.pod.end_in_words);
  return over(now, k, k.ends_as,
              !k.lost_reason.empty() ? k.lost_reason
              : made_anew_at(k)      ? "no other machine had room for it, so it may go to any"
                                     : "it is being deleted");
}

std::optional<rank_pods::verdict> rank_pods::over(instant now, known& k, pod_end end,
                                                  const std::string& why) {
  k.is_over = true;
  // While another one lives, the rank has lost nothing.
  if (!begun_ || !is_kept() || given_up_ || live() != nullptr)
    return std::nullopt;
  if (k.runs_since && now - *k.runs_since >= limits::pod_ran_well) {
    forget_row();
    told_.clear();
  }
  return judged(now, k.pod, end, why);
}

std::optional<rank_pods::verdict> rank_pods::gone(instant now, const std::string& uid) {
  const auto found = pods_.find(uid);
  remember_gone(uid,
                found == pods_.end() ? std::vector<std::string>() : found->second.pod.addresses);
  if (found == pods_.end())
    return std::nullopt;
  auto k = std::move(found->second);
  pods_.erase(found);
  if (k.is_over)
    return std::nullopt;
  return over(now, k, k.ends_as, k.lost_reason.empty() ? "it was deleted" : k.lost_reason);
}

std::optional<rank_pods::verdict> rank_pods::removed(instant now, const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end())
    return std::nullopt;
  auto& k = found->second;
  k.pod.is_terminating = true;
  return k.is_over ? std::nullopt : concluded(now, k);
}

void rank_pods::doubt(instant now, const std::string& uid) {
  if (const auto found = pods_.find(uid); found != pods_.end())
    found->second.look_at = now;
}

bool rank_pods::has_address(const known& k, const std::string& address) {
  const auto& all = k.pod.addresses;
  return !address.empty() &&
         (k.pod.name == address || std::find(all.begin(), all.end(), address) != all.end());
}

bool rank_pods::is_at(const known& k, const std::string& address) {
  return !k.is_over && has_address(k, address);
}

bool rank_pods::has_been_at(const std::string& address) const {
  return std::any_of(pods_.begin(), pods_.end(),
                     [&](const auto& each) { return has_address(each.second, address); }) ||
         std::any_of(gone_.begin(), gone_.end(), [&](const past& p) {
           return std::find(p.addresses.begin(), p.addresses.end(), address) != p.addresses.end();
         });
}

std::vector<std::string> rank_pods::machines_at(const std::string& address) const {
  std::vector<std::string> machines;
  for (const auto& [uid, k] : pods_)
    if (is_at(k, address))
      machines.push_back(k.pod.machine);
  return machines;
}

bool rank_pods::lost(instant now, const std::string& address, const std::string& reason) {
  return goes(address, now + limits::pod_of_lost_node_ends, pod_end::taken,
              "its node is lost: " + reason);
}

bool rank_pods::left(instant now, const std::string& address, pod_end how,
                     const std::string& reason) {
  return goes(address, now + limits::pod_of_left_node_ends, how,
              "its node was given up: " + reason);
}

/// The first reason counts.
bool rank_pods::goes(const std::string& address, instant at, pod_end how,
                     const std::string& reason) {
  bool any = false;
  for (auto& [uid, k] : pods_) {
    if (!is_at(k, address))
      continue;
    any = true;
    if (k.remove_at)
      continue;
    k.remove_at = at;
    k.lost_reason = reason;
    k.ends_as = how;
  }
  return any;
}

std::vector<std::string> rank_pods::all_told(instant now) {
  std::vector<std::string> forgotten;
  for (auto at = pods_.begin(); at != pods_.end();) {
    auto& k = at->second;
    if (!k.is_watched && k.is_over) {
      remember_gone(at->first, at->second.pod.addresses);
      forgotten.push_back(at->first);
      at = pods_.erase(at);
      continue;
    }
    if (!k.is_watched)
      k.look_at = now;
    ++at;
  }
  return forgotten;
}

void rank_pods::remember_gone(const std::string& uid, std::vector<std::string> addresses) {
  if (was_gone(uid))
    return;
  gone_.push_back({uid, std::move(addresses)});
  if (gone_.size() > limits::gone_pods_remembered)
    gone_.pop_front();
}

bool rank_pods::was_gone(const std::string& uid) const {
  return std::any_of(gone_.begin(), gone_.end(), [&](const past& p) { return p.uid == uid; });
}

void rank_pods::may_be_there() {
  if (making_)
    making_->may_be_there = true;
}

void rank_pods::is_not_there() {
  if (!making_)
    return;
  making_->may_be_there = false;
  if (!is_kept())
    making_.reset();
}

// ---- what follows ----

rank_pods::action rank_pods::next(instant now) const {
  if (!begun_)
    return {};
  const auto* one = live();
  if (one != nullptr && !is_kept())
    return ends_by_itself() ? action{} : rid_of(now, *one, false);
  if (const auto* one_more = surplus())
    return rid_of(now, *one_more, false);
  if (one != nullptr)
    return keep(now, *one);
  return make_next(now);
}

/// One that may not be there any more is looked for first.
rank_pods::action rank_pods::rid_of(instant now, const known& k, bool at_once) {
  const bool is_in_doubt = k.look_at && now >= *k.look_at;
  return {is_in_doubt ? act::look : act::remove, k.pod.name, k.pod.uid, at_once, {}};
}

rank_pods::action rank_pods::keep(instant now, const known& k) const {
  if (k.look_at && now >= *k.look_at)
    return {act::look, k.pod.name, k.pod.uid, false, {}};
  // A lost node does not end its pod's processes, so there is nothing to wait for.
  if (k.remove_at && now >= *k.remove_at)
    return rid_of(now, k, k.ends_as == pod_end::taken);
  const auto anew = made_anew_at(k);
  if (anew && now >= *anew)
    return rid_of(now, k, false);
  if (const auto* ended = oldest_ended())
    return {act::remove, ended->pod.name, ended->pod.uid, false, {}};
  return {act::nothing,
          {},
          {},
          false,
          earlier(earlier(earlier(k.look_at, k.remove_at), next_wait(k)), anew)};
}

/// One that is not placed yet cannot be changed, and the machines that it avoids may be good again.
std::optional<instant> rank_pods::made_anew_at(const known& k) {
  if (k.pod.phase != pod_phase::pending || !k.pod.machine.empty() || !k.pod.avoids_for_a_while)
    return std::nullopt;
  return k.since + limits::machine_of_lost_node_avoided;
}

rank_pods::action rank_pods::make_next(instant now) const {
  if (making_ && making_->may_be_there)
    return {act::look, making_->name, {}, false, {}};
  if (!is_kept())
    return {};
  if (const auto* ended = oldest_ended())
    return {act::remove, ended->pod.name, ended->pod.uid, false, {}};
  if (given_up_)
    return {};
  if (now < not_before_)
    return {act::nothing, {}, {}, false, not_before_};
  return {act::create, making_ ? making_->name : std::string(), {}, false, {}};
}

const rank_pods::known* rank_pods::live() const {
  const known* oldest = nullptr;
  const auto age = [](const known* k) { return std::tie(k->pod.created, k->pod.id, k->pod.uid); };
  for (const auto& [uid, k] : pods_)
    if (!k.is_over && (oldest == nullptr || age(&k) < age(oldest)))
      oldest = &k;
  return oldest;
}

const rank_pods::known* rank_pods::surplus() const {
  const auto* first = live();
  const known* youngest = nullptr;
  const auto age = [](const known* k) { return std::tie(k->pod.created, k->pod.id, k->pod.uid); };
  for (const auto& [uid, k] : pods_)
    if (!k.is_over && &k != first && (youngest == nullptr || age(youngest) < age(&k)))
      youngest = &k;
  return youngest;
}

const rank_pods::known* rank_pods::oldest_ended() const {
  const known* oldest = nullptr;
  std::size_t count = 0;
  for (const auto& [uid, k] : pods_)
    if (k.is_over && k.pod.phase == pod_phase::ended && !k.pod.is_terminating) {
      ++count;
      if (oldest == nullptr || k.pod.id < oldest->pod.id)
        oldest = &k;
    }
  return count > limits::ended_pods_kept ? oldest : nullptr;
}

bool rank_pods::is_running() const {
  const auto* one = live();
  return one != nullptr && one->pod.phase == pod_phase::running;
}

// ---- pods that do not begin ----

std::optional<instant> rank_pods::next_wait(const known& k) const {
  if (k.pod.phase != pod_phase::pending || k.remove_at)
    return std::nullopt;
  std::optional<instant> next;
  if (!k.pod.waits_for.empty() && told_.count(k.pod.waits_for) == 0 &&
      told_.size() < limits::pod_wait_reasons_max)
    next = k.pod.waits_for_image ? k.since : k.since + limits::pod_wait_untold;
  return k.late_told ? next : earlier(next, k.since + rules_.pending_limit);
}

std::optional<rank_pods::wait> rank_pods::tell_wait(instant now) {
  if (!begun_ || !is_kept() || live() == nullptr)
    return std::nullopt;
  auto& k = pods_.at(live()->pod.uid);
  const auto due = next_wait(k);
  if (!due || now < *due)
    return std::nullopt;
  const auto& reason = k.pod.waits_for_in_words;
  if (!k.late_told && now >= k.since + rules_.pending_limit) {
    k.late_told = true;
    return wait{k.pod.waits_for, reason.empty() ? "no reason is told" : reason, true};
  }
  told_.insert(k.pod.waits_for);
  return wait{k.pod.waits_for, reason, false};
}

} // namespace troupe::kube
