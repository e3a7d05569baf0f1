#include "actors/master/recovery/roster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace troupe::actors {

/// A rank stays taken while its node is away, since that node may be back any moment and go on with
/// it. When the node is lost the rank is free.
void roster::resize(std::uint32_t nodes_min, std::uint32_t nodes_max) {
  sizes_.nodes_min = nodes_min;
  sizes_.nodes_max = nodes_max;
  ranks_max_ = std::max(ranks_max_, nodes_max);
  most_nodes_.reset();
}

bool roster::possible(const world_sizes& sizes) const {
  if (nodes_.empty())
    return sizes.nodes_max >= sizes.unit;
  return sizes.most(nodes_.begin()->second.who.slots) > 0;
}

std::string roster::validation_error(const candidate& c) const {
  if (!c.wanted_rank)
    return {};
  if (*c.wanted_rank >= ranks_max_)
    return fmt::format("node rank {} does not exist among {} nodes (--node-rank)", *c.wanted_rank,
                       ranks_max_);
  const auto taken = wanted_ranks_.find(*c.wanted_rank);
  // The node itself says hello again on each new link.
  if (taken != wanted_ranks_.end() && taken->second != c.node)
    return fmt::format("node rank {} is taken by node {} (--node-rank)", *c.wanted_rank,
                       taken->second);
  return {};
}

/// A node that is back keeps its place in the order of arrival and is no arrival: an absence of a
/// moment must neither cost it its rank nor make the first world wait again.
bool roster::present(instant now, candidate who) {
  const auto known = nodes_.find(who.node);
  const bool anew = known == nodes_.end();
  who.arrival = anew ? ++arrivals_ : known->second.who.arrival;
  // Only a node that was not known is a sign that others may be on their way.
  if (anew)
    last_arrival_ = now;
  else if (known->second.away)
    --away_count_;
  if (who.wanted_rank)
    wanted_ranks_[*who.wanted_rank] = who.node;
  const auto node = who.node;
  // What was found of a machine holds for the launcher that was there.
  const bool same = !anew && known->second.who.which == who.which;
  const auto standing = same ? known->second.standing : node_standing::unchecked;
  if (!same)
    suspects_.erase(node);
  // Overwritten also if it is known: another launcher of the name may have other slots or another
  // address.
  nodes_[node] = entry{std::move(who), false, standing};
  return anew;
}

/// Its claims stay, but no world is formed with it: it could not hear Prepare.
bool roster::away(const node_name& node) {
  const auto known = nodes_.find(node);
  if (known == nodes_.end() || known->second.away)
    return false;
  known->second.away = true;
  ++away_count_;
  return true;
}

/// It counts as away, so it has no say in how large the world is, and is worth waiting for. It has
/// not arrived either: that would tell the planner that others may be about to come.
void roster::expect(candidate who) {
  who.arrival = ++arrivals_;
  const auto node = who.node;
  if (nodes_.emplace(node, entry{std::move(who), true, node_standing::good}).second)
    ++away_count_;
}

/// What the last world knows of its name stays: if the node comes back before the next world is
/// sealed, it has its rank again, and the other members keep theirs.
void roster::forget(instant now, const node_name& node) {
  const auto known = nodes_.find(node);
  if (known == nodes_.end())
    return;
  if (last_lost_ != node)
    loss_before_ = last_loss_;
  last_loss_ = now;
  last_lost_ = node;
  if (known->second.away)
    --away_count_;
  else
    last_silence_ = now;
  // Free for the node that is started in its place, which has the same rank and another name.
  if (const auto rank = known->second.who.wanted_rank)
    wanted_ranks_.erase(*rank);
  suspects_.erase(node);
  nodes_.erase(known);
}

void roster::set_standing(const node_name& node, incarnation which, node_standing s) {
  const auto known = nodes_.find(node);
  if (known == nodes_.end() || known->second.who.which != which)
    return;
  known->second.standing = s;
  if (s == node_standing::suspect)
    suspects_.insert(node);
  else
    suspects_.erase(node);
}

node_standing roster::standing(const node_name& node) const {
  const auto known = nodes_.find(node);
  return known == nodes_.end() ? node_standing::unchecked : known->second.standing;
}

void roster::forget_suspicions() {
  for (const auto& node : std::exchange(suspects_, {}))
    nodes_.at(node).standing = node_standing::unchecked;
}

void roster::forget_checks() {
  suspects_.clear();
  for (auto& [node, n] : nodes_)
    n.standing = node_standing::unchecked;
}

/// Few at any time: those of which a check could not tell which is broken, and those on their way
/// out.
std::size_t roster::suspects_here() const {
  return static_cast<std::size_t>(
      std::count_if(suspects_.begin(), suspects_.end(),
                    [this](const node_name& node) { return !nodes_.at(node).away; }));
}

bool roster::is_away(const node_name& node) const {
  const auto known = nodes_.find(node);
  return known != nodes_.end() && known->second.away;
}

/// Nothing for a member that is lost by now: then the master's own limit has to do.
std::optional<duration> roster::stop_within(const node_name& node) const {
  const auto known = nodes_.find(node);
  if (known == nodes_.end())
    return std::nullopt;
  return known->second.who.stop_within;
}

std::string roster::address(const node_name& node) const {
  const auto known = nodes_.find(node);
  return known == nodes_.end() ? std::string() : known->second.who.address;
}

std::vector<node_name> roster::everyone() const {
  std::vector<node_name> names;
  for (const auto& [name, n] : nodes_)
    names.push_back(name);
  return names;
}

std::vector<node_name> roster::all_away() const {
  std::vector<node_name> names;
  for (const auto& [name, n] : nodes_)
    if (n.away)
      names.push_back(name);
  return names;
}

/// One order for two questions: which nodes take part, and which are left over as standbys. Members
/// come before standbys that were here earlier, because their ranks would else move from world to
/// world; a standby whose place was taken has not lost anything.
std::vector<candidate> roster::claimants(const node_name& without) const {
  struct claim {
    bool member, wished;
    std::uint32_t rank;
    std::uint64_t arrival;
    const candidate* who;
  };
  // By pointer: names and addresses of thousands of nodes are only copied once, in their order.
  std::vector<claim> claims;
  claims.reserve(nodes_.size());
  for (const auto& [name, n] : nodes_) {
    // `without` asks what would be left: a node is only given up if a world can do without it.
    if (n.away || name == without || n.standing == node_standing::suspect)
      continue;
    const auto held = last_group_ranks_.find(name);
    // By name, also if it was lost and has joined anew: then it has its old rank again.
    const bool member = held != last_group_ranks_.end();
    claims.push_back(
        {member, n.who.wanted_rank.has_value(), member ? held->second : 0, n.who.arrival, &n.who});
  }
  std::sort(claims.begin(), claims.end(), [](const claim& a, const claim& b) {
    // Newcomers all have rank 0 here, so among them the wish decides, then the arrival.
    return std::tuple(!a.member, a.rank, !a.wished, a.arrival) <
           std::tuple(!b.member, b.rank, !b.wished, b.arrival);
  });
  std::vector<candidate> all;
  all.reserve(claims.size());
  for (const auto& c : claims)
    all.push_back(*c.who);
  return all;
}

/// Only the first so many are asked about. A larger world might be possible without one in the
/// middle, and would put a newcomer before a member.
std::uint32_t roster::largest_world(const std::vector<candidate>& of) const {
  std::vector<std::uint32_t> slots;
  slots.reserve(of.size());
  for (const auto& c : of)
    slots.push_back(c.slots);
  return sizes_.largest_of(slots);
}

/// Asked at every hello, and with an elasticity config the answer is a search; so it is kept for as
/// long as nodes have the same number of slots.
std::uint32_t roster::most_nodes() const {
  if (nodes_.empty())
    return sizes_.nodes_max;
  // The first node stands for all. Where nodes differ this only makes the planner wait a little
  // longer, or less; which world is formed is decided by the real numbers.
  const auto slots = nodes_.begin()->second.who.slots;
  if (!most_nodes_ || most_nodes_->first != slots)
    most_nodes_ = std::pair{slots, sizes_.most(slots)};
  return most_nodes_->second;
}

std::uint32_t roster::least() const {
  return sizes_.least(nodes_.empty() ? 1 : nodes_.begin()->second.who.slots);
}

bool roster::is_spare(const node_name& node) const {
  return largest_world(claimants(node)) != 0 ||
         (a_member_is_away() && nodes_.size() - suspects_here() > least());
}

/// Nodes that are away count: the one that is cut off, for which this is asked, is one of them.
bool roster::one_is_dispensable() const {
  return !nodes_.empty() && nodes_.size() > least();
}

/// A node that is away is not missing: if it comes back, no node had to be started for it.
std::uint32_t roster::missing() const {
  const auto needed = least();
  return needed > nodes_.size() ? needed - static_cast<std::uint32_t>(nodes_.size()) : 0;
}

/// Only of a sealed world, which has trained: a proposal that came to nothing moves no node's rank.
void roster::remember_world(const std::vector<seat>& world) {
  last_group_ranks_.clear();
  for (const auto& s : world)
    last_group_ranks_[s.node] = s.group_rank;
}

/// One loss says nothing about other nodes. With two of them a rack, a switch or a power supply is
/// the likely cause, and of such a cause the nodes are not noticed at one moment.
bool roster::losses_come_together(instant since) const {
  const bool one = last_loss_ && *last_loss_ >= since;
  return one && ((loss_before_ && *loss_before_ >= since) || a_member_is_away());
}

/// The kernels of machines that fail together close their connections at one moment. Nodes that
/// fall silent together are noticed up to a beat apart, which is seconds where the lease is long.
instant roster::others_show_until(duration quiet, duration beat) const {
  const auto closed = *last_loss_ + quiet;
  return last_silence_ ? std::max(closed, *last_silence_ + beat) : closed;
}

/// While no world was sealed, any node that is away may have been meant for the one that was
/// proposed.
bool roster::a_member_is_away() const {
  return away_count_ > 0 && std::any_of(nodes_.begin(), nodes_.end(), [this](const auto& n) {
           return n.second.away &&
                  (last_group_ranks_.empty() || last_group_ranks_.count(n.first) != 0);
         });
}

} // namespace troupe::actors
