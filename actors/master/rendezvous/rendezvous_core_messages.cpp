// What rendezvous_core says: its messages, and its state in words.

#include "actors/master/rendezvous/rendezvous_core.hpp"

#include <fmt/format.h>

namespace troupe::actors {

using namespace messages;

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
                    })
      .any();
}

any_msg rendezvous_core::stop_message(const std::string& reason) {
  return author_.write<Stop>(current_, [&](auto b) { b.setReason(reason); }).any();
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
