#include "tests/sim/copies.hpp"

#include <algorithm>
#include <utility>

namespace troupe::sim {

void copies::launcher_started(const host_ptr& launcher) {
  auto& memory = memories_[launcher->name()];
  memory.writer_died();
  present_[launcher->name()].target = std::make_shared<copy_target>(world_, launcher, memory);
}

void copies::launcher_ended(const host_ptr& launcher, ending_kind how) {
  present_.erase(launcher->name());
  for (const auto& link : links_)
    for (const auto side : {copy_link::source, copy_link::target})
      if (link->at(side) == launcher)
        link->vanish(side, how == ending_kind::power_cut);
  if (how != ending_kind::crashed)
    memories_.erase(launcher->name());
}

void copies::learn_owners(const std::string& node, const messages::msg<messages::RankOwners>& m) {
  if (const auto at = present_.find(node); at != present_.end())
    at->second.target->learn(m);
}

copy_source& copies::source_of(const host_ptr& launcher, local_rank local) {
  auto& source = present_.at(launcher->name()).sources[local];
  if (!source)
    source = std::make_shared<copy_source>(launcher,
                                           [this](const std::string& address, copy_link::ear from) {
                                             return dial(address, std::move(from));
                                           });
  return *source;
}

std::shared_ptr<copy_link> copies::dial(const std::string& address, copy_link::ear from) {
  const auto closed = [](const auto& link) {
    return !link->is_open(copy_link::source) && !link->is_open(copy_link::target);
  };
  links_.erase(std::remove_if(links_.begin(), links_.end(), closed), links_.end());
  const auto to = present_.find(address);
  if (to == present_.end())
    return nullptr;
  const auto& link = links_.emplace_back(std::make_shared<copy_link>(world_, std::move(from)));
  to->second.target->accept(link);
  return link;
}

} // namespace troupe::sim
