#include "messages/kinds.hpp"
#include "tests/sim/checkers/checkers.hpp"

#include <fmt/format.h>

#include <map>
#include <string>

namespace troupe::sim::checkers {

namespace {

class processes_follow_the_generation_checker final : public observer {
 public:
  processes_follow_the_generation_checker(world& w, const trainers& t) : world_(w), trainers_(t) {}

  void ended(const std::string& host, ending_kind how) override {
    if (how != ending_kind::crashed)
      current_.erase(host);
  }

  // A node's generation is the one it last said Prepared for: with that it promises that nothing
  // older is alive. A Start that was overtaken by the next Prepare may still be obeyed before, and
  // undone.
  void sent(const std::string& from, const std::string&, const messages::any_msg& m) override {
    if (m.is<messages::Prepared>())
      current_[from] = m.envelope().about;
  }

  void dialled(const std::string& from, const messages::msg<messages::Hello>& hello) override {
    auto said = hello.read();
    if (said->getState().getPhase() == messages::NodeState::Phase::PREPARED)
      current_[from] = generation{said->getState().getGeneration()};
  }

  void process_started(const process_record& p) override {
    if (p.which != current_[p.node])
      world_.blame("processes_follow_the_generation",
                   fmt::format("{} started rank {} of generation {} while its own is {}", p.node,
                               p.rank, p.which.value, current_[p.node].value));
    for (const auto& other : trainers_.all()) {
      const bool there =
          other.node == p.node && !other.ended && !other.killed && !other.beyond_reach;
      if (there && other.which != p.which)
        world_.blame(
            "processes_follow_the_generation",
            fmt::format(
                "{} started rank {} of generation {} while pid {} of generation {} was alive",
                p.node, p.rank, p.which.value, other.pid, other.which.value));
    }
  }

 private:
  world& world_;
  const trainers& trainers_;
  std::map<std::string, generation> current_;
};

} // namespace

std::shared_ptr<observer> processes_follow_the_generation(world& w, const trainers& t) {
  return std::make_shared<processes_follow_the_generation_checker>(w, t);
}

} // namespace troupe::sim::checkers
