#include "tests/sim/checkers/checkers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

namespace troupe::sim::checkers {

namespace {

class newest_master_commands_checker final : public observer {
 public:
  explicit newest_master_commands_checker(world& w) : world_(w) {}

  void ended(const std::string& host, ending_kind how) override {
    if (how != ending_kind::crashed)
      newest_.erase(host); // with the launcher goes what it knew
  }

  void process_started(const process_record& p) override {
    auto& newest = newest_[p.node];
    if (p.which < newest)
      world_.blame("newest_master_commands",
                   fmt::format("{} starts generation {} after generation {}", p.node, p.which.value,
                               newest.value));
    newest = std::max(newest, p.which);
  }

 private:
  world& world_;
  std::map<std::string, generation> newest_;
};

} // namespace

std::shared_ptr<observer> newest_master_commands(world& w) {
  return std::make_shared<newest_master_commands_checker>(w);
}

} // namespace troupe::sim::checkers
