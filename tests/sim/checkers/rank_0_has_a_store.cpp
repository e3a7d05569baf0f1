#include "tests/sim/checkers/checkers.hpp"

#include <fmt/format.h>

#include <map>

namespace troupe::sim::checkers {

namespace {

class rank_0_has_a_store_checker final : public observer {
 public:
  explicit rank_0_has_a_store_checker(world& w) : world_(w) {}

  void store_opened(const std::string& host) override {
    if (++open_[host] > 1)
      blame(host + " has two stores open");
  }

  void store_closed(const std::string& host) override {
    --open_[host];
    closed_[host] = world_.events.now();
  }

  /// A process may be on its way into being when the agent that has the store fails; it is ended
  /// with all of the agent's.
  void process_started(const process_record& p) override {
    const auto closed = closed_.find(p.node);
    const bool on_its_way =
        closed != closed_.end() && world_.events.now() - closed->second < start_takes;
    if (p.rank == 0 && open_[p.node] == 0 && !on_its_way)
      blame(fmt::format("rank 0 of generation {} has no store on {}", p.which.value, p.node));
  }

  void ended(const std::string& host, ending_kind how) override {
    if (how != ending_kind::crashed)
      open_.erase(host);
  }

 private:
  static constexpr duration start_takes = 10ms;

  void blame(std::string what) { world_.blame("rank_0_has_a_store", std::move(what)); }

  world& world_;
  std::map<std::string, int> open_;
  std::map<std::string, instant> closed_;
};

} // namespace

std::shared_ptr<observer> rank_0_has_a_store(world& w) {
  return std::make_shared<rank_0_has_a_store_checker>(w);
}

} // namespace troupe::sim::checkers
