#include "tests/sim/checkers/checkers.hpp"

#include <fmt/format.h>

namespace troupe::sim::checkers {

namespace {

class nothing_left_behind_checker final : public observer {
 public:
  nothing_left_behind_checker(world& w, const trainers& t) : world_(w), trainers_(t) {}

  void ended(const std::string& host, ending_kind how) override {
    if (how == ending_kind::exited)
      nobody_on(host);
  }

  void finished() override {
    for (const auto& p : trainers_.all())
      if (!p.ended && !p.killed && !p.beyond_reach)
        blame(p);
  }

 private:
  void nobody_on(const std::string& node) {
    for (const auto& p : trainers_.all())
      if (p.node == node && !p.ended && !p.killed && !p.beyond_reach)
        blame(p);
  }

  void blame(const process_record& p) {
    world_.blame("nothing_left_behind",
                 fmt::format("pid {} (generation {}, rank {}{}) on {} is still alive", p.pid,
                             p.which.value, p.rank, p.stray ? ", a stray" : "", p.node));
  }

  world& world_;
  const trainers& trainers_;
};

} // namespace

std::shared_ptr<observer> nothing_left_behind(world& w, const trainers& t) {
  return std::make_shared<nothing_left_behind_checker>(w, t);
}

} // namespace troupe::sim::checkers
