// How rendezvous_core decides how large the next world is, and when nobody else is waited for.

#include "actors/master/rendezvous/rendezvous_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace troupe::actors {

using namespace messages;

std::vector<candidate> rendezvous_core::claimants(const node_name& without) const {
  struct claim {
    bool member, wished;
    std::uint32_t rank;
    std::uint64_t arrival;
    const candidate* who;
  };
  std::vector<claim> claims;
  claims.reserve(nodes_.size());
  for (const auto& [name, n] : nodes_) {
    if (n.away || name == without)
      continue;
    const auto held = last_group_ranks_.find(name);
    const bool member = held != last_group_ranks_.end();
    claims.push_back(
        {member, n.who.wanted_rank.has_value(), member ? held->second : 0, n.who.arrival, &n.who});
  }
  std::sort(claims.begin(), claims.end(), [](const claim& a, const claim& b) {
    return std::tuple(!a.member, a.rank, !a.wished, a.arrival) <
           std::tuple(!b.member, b.rank, !b.wished, b.arrival);
  });
  std::vector<candidate> all;
  all.reserve(claims.size());
  for (const auto& c : claims)
    all.push_back(*c.who);
  return all;
}

std::uint32_t rendezvous_core::largest_world(const std::vector<candidate>& of) const {
  std::vector<std::uint32_t> slots;
  slots.reserve(of.size());
  for (const auto& c : of)
    slots.push_back(c.slots);
  return options_.largest_of(slots);
}

std::uint32_t rendezvous_core::most_nodes() const {
  if (nodes_.empty())
    return options_.nodes_max;
  const auto slots = nodes_.begin()->second.who.slots;
  if (!most_nodes_ || most_nodes_->first != slots)
    most_nodes_ = std::pair{slots, options_.most(slots)};
  return most_nodes_->second;
}

std::uint32_t rendezvous_core::missing() const {
  const auto slots = nodes_.empty() ? 1 : nodes_.begin()->second.who.slots;
  const auto needed = options_.least(slots);
  return needed > nodes_.size() ? needed - static_cast<std::uint32_t>(nodes_.size()) : 0;
}

void rendezvous_core::forget(const node_name& node) {
  const auto known = nodes_.find(node);
  if (known == nodes_.end())
    return;
  if (known->second.away)
    --away_count_;
  if (const auto rank = known->second.who.wanted_rank)
    wanted_ranks_.erase(*rank);
  nodes_.erase(known);
  standing_by_.erase(node);
}

// ---- when ----

/// Looked at whenever a node comes: cheap until there is something to decide.
void rendezvous_core::consider_proposing(effects& out, instant now) {
  if (gave_up_)
    return; // the verdict is on its way
  const auto present_count = nodes_.size() - away_count_;
  if (present_count < options_.nodes_min)
    return not_enough(out, now);
  if (enough_since_ && present_count < most_nodes() && settling(now))
    return;
  auto present = claimants();
  const auto size = largest_world(present);
  if (size == 0)
    return not_enough(out, now);
  const bool complete = size >= most_nodes();
  if (!enough_since_) {
    enough_since_ = now;
    waiting_.end();
    if (!complete && settling(now))
      out.push_back(note{settling_in_words()});
  }
  if (complete || !settling(now))
    propose(out, now, std::move(present), size);
}

void rendezvous_core::not_enough(effects& out, instant now) {
  if (enough_since_)
    waiting_.begin(now);
  enough_since_.reset();
  consider_relaunches(out);
}

bool rendezvous_core::settling(instant now) const {
  const auto until = settled_at();
  return !until || now < *until;
}

std::optional<instant> rendezvous_core::settled_at() const {
  if (first_world_ && options_.last_call)
    return *enough_since_ + *options_.last_call;
  if (first_world_)
    return std::min(std::max(last_arrival_, *enough_since_) + options_.settle,
                    *enough_since_ + options_.settle_most);
  if (waits_for_members())
    return std::nullopt;
  // Who was lost is lost and who is left is here. Only if somebody has come since, others may be
  // about to.
  if (last_arrival_ > phase_since_)
    return std::min(last_arrival_ + options_.growth.quiet, *enough_since_ + options_.growth.most);
  return *enough_since_;
}

bool rendezvous_core::waits_for_members() const {
  return away_count_ > 0 && std::any_of(nodes_.begin(), nodes_.end(), [this](const auto& n) {
           return n.second.away &&
                  (last_group_ranks_.empty() || last_group_ranks_.count(n.first) != 0);
         });
}

void rendezvous_core::propose(effects& out, instant now, std::vector<candidate> present,
                              std::uint32_t size) {
  if (waited_for_ > 0) {
    relaunches_ += waited_for_;
    out.push_back(note{relaunched_in_words()});
  }
  const std::vector<candidate> taken(present.begin(), present.begin() + size);
  world_ = assign_ranks(taken, last_group_ranks_);
  members_.clear();
  for (const auto& s : world_) {
    members_.insert(s.node);
    standing_by_.erase(s.node);
  }
  become_preparing(out, now);
  tell_spares(out, present);
}

// ---- giving up ----

void rendezvous_core::consider_giving_up(effects& out, instant now) {
  if (gave_up_ || enough_since_ || now - phase_since_ < options_.join_timeout)
    return;
  give_up(out,
          fmt::format("only {} of at least {} nodes joined within {}", nodes_.size() - away_count_,
                      options_.nodes_min, troupe::in_words(options_.join_timeout)));
}

void rendezvous_core::consider_relaunches(effects& out) {
  if (last_group_ranks_.empty() || gave_up_)
    return;
  waited_for_ = std::max(waited_for_, missing());
  if (!options_.relaunches_max || relaunches_ + waited_for_ <= *options_.relaunches_max)
    return;
  give_up(out, fmt::format("{} of at least {} nodes are left, and {} (--node-relaunches)",
                           nodes_.size(), options_.nodes_min,
                           *options_.relaunches_max == 0
                               ? "none may be waited for"
                               : fmt::format("{} of {} relaunches are used up", relaunches_,
                                             *options_.relaunches_max)));
}

void rendezvous_core::give_up(effects& out, const std::string& why) {
  gave_up_ = true;
  waiting_.end();
  out.push_back(inform_recovery{
      author_.write<Unformable>(current_, [&](auto b) { b.setReason(why); }).any()});
}

// ---- a running world ----

/// Not while a member is away or lost: its return or loss comes first.
std::optional<instant> rendezvous_core::growth_due() const {
  if (phase_ != phase::running || away_count_ > 0 || !lost_members_.empty())
    return std::nullopt;
  return growth_.due();
}

void rendezvous_core::consider_growing(effects& out, instant) {
  growth_.settled();
  const auto all = claimants();
  const auto size = largest_world(all);
  if (size <= world_.size())
    return tell_spares(out, all);
  const auto more = size - world_.size();
  out.push_back(inform_recovery{author_
                                    .write<NodesWaiting>(current_,
                                                         [&](auto b) {
                                                           b.setReason(fmt::format(
                                                               "{} more node{} here", more,
                                                               more == 1 ? " is" : "s are"));
                                                         })
                                    .any()});
}

void rendezvous_core::tell_spares(effects& out, const std::vector<candidate>& all) {
  std::vector<node_name> spares;
  for (const auto& c : all)
    if (!is_member(c.node) && standing_by_.insert(c.node).second)
      spares.push_back(c.node);
  if (spares.empty())
    return;
  const auto why = spare_in_words(all.size());
  out.push_back(
      direct{spares, author_.write<StandBy>(current_, [&](auto b) { b.setReason(why); }).any()});
  out.push_back(note{standing_by_in_words(spares, why)});
}

} // namespace troupe::actors
