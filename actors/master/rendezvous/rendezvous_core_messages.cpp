// What rendezvous_core says: its messages to actors, and its words to people.

#include "actors/master/rendezvous/rendezvous_core.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

using namespace messages;

namespace {

std::string counted(std::size_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

/// Names for a line on a screen.
std::string few_of(const std::vector<node_name>& nodes) {
  constexpr std::size_t told = 4;
  const auto end = nodes.begin() + static_cast<std::ptrdiff_t>(std::min(told, nodes.size()));
  auto text = fmt::format("{}", fmt::join(nodes.begin(), end, ", "));
  if (nodes.size() > told)
    text += fmt::format(" and {} more", nodes.size() - told);
  return text;
}

/// "node a", "a (ranks 0–3), b (4–7)", "64 nodes".
std::string ranks_in_words(const std::vector<seat>& world) {
  constexpr std::size_t told = 4;
  if (world.size() > told)
    return counted(world.size(), "node");
  if (world.size() == 1)
    return "node " + world.front().node;
  std::string text;
  for (const auto& s : world)
    text +=
        fmt::format("{}{} ({}{})", text.empty() ? "" : ", ", s.node,
                    text.empty() ? (s.slots == 1 ? "rank " : "ranks ") : "",
                    s.slots == 1 ? fmt::format("{}", s.first_rank)
                                 : fmt::format("{}–{}", s.first_rank, s.first_rank + s.slots - 1));
  return text;
}

} // namespace

bool rendezvous_core::is_member(const node_name& node) const {
  return members_.count(node) != 0;
}

std::vector<node_name> rendezvous_core::member_names() const {
  std::vector<node_name> names;
  for (const auto& s : world_)
    names.push_back(s.node);
  return names;
}

std::vector<node_name> rendezvous_core::everyone() const {
  std::vector<node_name> names;
  for (const auto& [name, n] : nodes_)
    names.push_back(name);
  return names;
}

void rendezvous_core::write_world(World::Builder out) const {
  out.setGeneration(current_.value);
  out.setRestartCount(restart_count_);
  out.setWorldSize(world_.back().first_rank + world_.back().slots);
  auto members = out.initMembers(static_cast<unsigned>(world_.size()));
  for (unsigned i = 0; i < world_.size(); ++i) {
    members[i].setNode(world_[i].node);
    members[i].setAddress(world_[i].address);
    members[i].setSlots(world_[i].slots);
    members[i].setGroupRank(world_[i].group_rank);
    members[i].setFirstRank(world_[i].first_rank);
  }
}

any_msg rendezvous_core::prepare_message() {
  return author_.write<Prepare>(current_, [&](auto b) { write_world(b.initWorld()); }).any();
}

any_msg rendezvous_core::start_message() {
  return author_
      .write<Start>(current_,
                    [&](auto b) {
                      b.setStoreAddress(store_.address);
                      b.setStorePort(store_.port);
                      b.setStoreHosted(store_.hosted);
                    })
      .any();
}

any_msg rendezvous_core::stop_message(generation which, const std::string& reason) {
  return author_.write<Stop>(which, [&](auto b) { b.setReason(reason); }).any();
}

log::event rendezvous_core::joined_in_words(const node_name& node) const {
  // A screen has room for a few dozen; in a larger job they are for a closer look.
  constexpr std::uint32_t told = 64;
  return {options_.nodes_max <= told ? log::level::story : log::level::info,
          "node_joined",
          fmt::format("node {} is here ({} of {})", node, nodes_.size(), options_.nodes_max),
          {{"node", node}, {"present", static_cast<std::int64_t>(nodes_.size())}}};
}

log::event rendezvous_core::sealed_in_words(duration took) const {
  const auto world_size = world_.back().first_rank + world_.back().slots;
  return {log::level::story,
          "generation_sealed",
          fmt::format("generation {} is sealed: {} on {} (prepared in {})", current_.value,
                      counted(world_size, "worker"), ranks_in_words(world_),
                      troupe::in_words(took)),
          {{"generation", static_cast<std::int64_t>(current_.value)},
           {"nodes", static_cast<std::int64_t>(world_.size())},
           {"world_size", static_cast<std::int64_t>(world_size)},
           {"prepare_ms", milliseconds_of(took)}}};
}

log::event rendezvous_core::settling_in_words() const {
  const auto present = nodes_.size() - away_count_;
  const auto how =
      options_.last_call
          ? fmt::format("in {} unless the others come first", troupe::in_words(*options_.last_call))
          : fmt::format("when nobody has come for {}, within {}", troupe::in_words(options_.settle),
                        troupe::in_words(options_.settle_most));
  return {log::level::story,
          "last_call",
          fmt::format("{} of at most {} nodes are here, which is enough: starting {}", present,
                      options_.nodes_max, how),
          {{"present", static_cast<std::int64_t>(present)}}};
}

log::event rendezvous_core::relaunched_in_words() const {
  return {
      log::level::story,
      "nodes_relaunched",
      fmt::format("{} had to be waited for, {}{} in all", counted(waited_for_, "node"), relaunches_,
                  options_.relaunches_max ? fmt::format(" of {}", *options_.relaunches_max) : ""),
      {{"relaunches", static_cast<std::int64_t>(relaunches_)}}};
}

std::string rendezvous_core::spare_in_words(std::size_t present) const {
  const auto nodes = counted(world_.size(), "node");
  // Members may be away: how many are here says nothing.
  if (world_.size() == options_.nodes_max)
    return fmt::format("generation {} has {}, the most there can be (--nnodes)", current_.value,
                       nodes);
  return fmt::format("generation {} has {} of the {} that are here, {}", current_.value, nodes,
                     present,
                     options_.elastic ? "the largest world the elasticity config allows"
                                      : "a whole number of units (--node_unit)");
}

log::event rendezvous_core::standing_by_in_words(const std::vector<node_name>& spares,
                                                 const std::string& why) const {
  return {log::level::story,
          "standing_by",
          fmt::format("{} stand{} by: {}", few_of(spares), spares.size() == 1 ? "s" : "", why),
          {{"nodes", static_cast<std::int64_t>(spares.size())}}};
}

/// Says what the wait is for.
void rendezvous_core::remind(effects& out, instant now) {
  const auto waited = troupe::in_words(waiting_.waited(now));
  std::string text;
  if (phase_ == phase::preparing) {
    std::vector<node_name> unready;
    for (const auto& s : world_)
      if (!prepared_.count(s.node))
        unready.push_back(s.node);
    text = fmt::format("generation {} waits for {} to get ready, for {} now", current_.value,
                       few_of(unready), waited);
  } else {
    const auto left = options_.join_timeout - (now - phase_since_);
    text = fmt::format("{} of {} nodes are here after {}; giving up in {}",
                       nodes_.size() - away_count_, options_.nodes_min, waited,
                       troupe::in_words(left));
  }
  out.push_back(note{{log::level::story,
                      "still_waiting",
                      text,
                      {{"waited_ms", milliseconds_of(waiting_.waited(now))}}}});
}

std::string rendezvous_core::in_words() const {
  switch (phase_) {
  case phase::gathering:
    return fmt::format("gathering: {} of {} nodes present", nodes_.size(), options_.nodes_max);
  case phase::preparing:
    return fmt::format("preparing generation {}: {} of {} nodes ready", current_.value,
                       prepared_.size(), world_.size());
  case phase::running:
    return fmt::format("generation {} runs on {} nodes", current_.value, world_.size());
  case phase::concluded:
    return "concluded";
  }
  return {};
}

} // namespace troupe::actors
