#include "messages/kinds.hpp"
#include "tests/sim/checkers/checkers.hpp"
#include "tests/sim/cluster.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>

namespace troupe::sim::checkers {

namespace {

using ranks = std::map<std::string, std::uint32_t>; ///< group ranks of a world's nodes

class ranks_are_stable_checker final : public observer {
 public:
  explicit ranks_are_stable_checker(world& w) : world_(w) {}

  void recorded(const messages::any_msg& m) override {
    if (!m.is<messages::GenerationSealed>())
      return;
    auto sealed = m.as<messages::GenerationSealed>().read();
    ranks now;
    sealed_ = m.envelope().about;
    for (auto member : sealed->getWorld().getMembers())
      now[member.getNode().cStr()] = member.getGroupRank();
    // Of a seal that was not started the master may count from it or from the world before.
    const auto since_started = unstable(last_, now);
    if (since_started && unstable(next_, now))
      world_.blame("ranks_are_stable", *since_started);
    next_ = std::move(now);
  }
  /// A world that was sealed and is not started has no ranks that any process has seen: a node was
  /// lost while the seal was on its way to the journal.
  void sent(const std::string&, const std::string&, const messages::any_msg& m) override {
    if (m.is<messages::Start>() && m.envelope().about == sealed_)
      last_ = next_;
  }
  /// The next master knows of a seal from the journal, and not whether it was started.
  void started(const std::string& host, std::uint64_t) override {
    if (host == cluster::master_name())
      last_ = next_;
  }

 private:
  static std::optional<std::string> unstable(const ranks& before, const ranks& now) {
    const bool shrank = now.size() < before.size();
    std::map<std::uint32_t, std::uint32_t> moves; // of nodes in both, in order of the older rank
    for (const auto& [node, rank] : before)
      if (const auto still = now.find(node); still != now.end())
        moves[rank] = still->second;
    std::uint32_t least = 0;
    for (const auto& [rank, after] : moves) {
      if (shrank ? after < least : after != rank)
        return fmt::format("a node of group rank {} has {} in a world of {} nodes after {}", rank,
                           after, now.size(), before.size());
      least = after + 1;
    }
    return std::nullopt;
  }

  world& world_;
  ranks last_; ///< started
  ranks next_; ///< sealed
  generation sealed_;
};

} // namespace

std::shared_ptr<observer> ranks_are_stable(world& w) {
  return std::make_shared<ranks_are_stable_checker>(w);
}

} // namespace troupe::sim::checkers
