#include "actors/master/diagnosis/stacks_gather.hpp"

#include "actors/limits.hpp"

#include <utility>

namespace troupe::actors {

void stacks_gather::begin(instant now, const messages::msg<messages::StacksWanted>& what,
                          const std::vector<node_name>& nodes) {
  auto said = what.read();
  dump_ = said->getDump();
  missing_ = {nodes.begin(), nodes.end()};
  nodes_ = missing_.size();
  came_.clear();
  until_ = now + std::chrono::milliseconds(said->getWithinMs()) + limits::stacks_on_the_way;
}

std::optional<stacks_gather::gathered>
stacks_gather::take(const messages::msg<messages::MergedStacks>& m) {
  auto said = m.read();
  if (!until_ || said->getDump() != dump_ || missing_.erase(said->getNode().cStr()) == 0)
    return std::nullopt;
  came_.push_back(m);
  return missing_.empty() ? std::optional(finish()) : std::nullopt;
}

std::optional<stacks_gather::gathered> stacks_gather::tick(instant now) {
  return until_ && now >= *until_ ? std::optional(finish()) : std::nullopt;
}

std::optional<instant> stacks_gather::next_wakeup() const {
  return until_;
}

stacks_gather::gathered stacks_gather::finish() {
  until_.reset();
  return {dump_, std::exchange(came_, {}), nodes_};
}

} // namespace troupe::actors
