#include "actors/master/diagnosis/stacks_gather.hpp"

#include "actors/limits.hpp"

#include <utility>

namespace troupe::actors {

std::optional<std::uint64_t> stacks_gather::begin(instant now,
                                                  const messages::msg<messages::StacksWanted>& what,
                                                  const std::vector<diagnosis_core::part>& parts) {
  auto said = what.read();
  const auto before = dump();
  dump_ = said->getDump();
  missing_.clear();
  for (const auto& p : parts)
    missing_.emplace(p.node, p);
  came_.clear();
  within_ = std::chrono::milliseconds(said->getWithinMs()) + limits::stacks_on_the_way;
  until_ = now + within_;
  return before;
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

std::optional<std::uint64_t> stacks_gather::dump() const {
  return until_ ? std::optional(dump_) : std::nullopt;
}

stacks_gather::gathered stacks_gather::finish() {
  until_.reset();
  gathered all{dump_, std::exchange(came_, {}), {}, within_};
  for (auto& [node, part] : std::exchange(missing_, {}))
    all.absent.push_back(std::move(part));
  return all;
}

} // namespace troupe::actors
