#include "tests/sim/probes.hpp"

#include <chrono>
#include <utility>

namespace troupe::sim {

class sim_probe_host final : public probe::probe_host {
 public:
  sim_probe_host(probes& of, host_ptr launcher) : of_(of), launcher_(std::move(launcher)) {}

  void probe_node(const messages::msg<messages::NodeProbeWanted>& wanted, probed done) override {
    const auto name = launcher_->name();
    const auto slower = of_.slow.count(name) != 0 ? of_.slow.at(name) : 1.0;
    auto takes = std::chrono::duration_cast<duration>(of_.takes * slower);
    std::string failed = of_.broken.count(name) != 0 ? "device 0: it computes wrongly" : "";
    if (of_.stuck.count(name) != 0) {
      takes = std::chrono::milliseconds(wanted.read()->getWithinMs());
      failed = "the probe of this node's devices did not end";
    }
    const auto report = messages::local<messages::NodeProbed>(
        "network_prober", [&](messages::NodeProbed::Builder b) {
          b.setNode(name);
          b.setCheck(wanted.read()->getCheck());
          b.setFailed(failed);
          b.setSeconds(std::chrono::duration<double>(takes).count());
          b.setCollectives(of_.collectives);
          b.setRanks(of_.collectives.empty() ? 0 : 1);
        });
    of_.world_.events.in(takes, [launcher = launcher_, report, done = std::move(done)] {
      if (launcher->alive())
        done(report);
    });
  }

  /// Devices take no notice of each other: what goes wrong between nodes does so at their links.
  void probe_group(const messages::msg<messages::DevicesProbeWanted>& wanted, key_made made,
                   group_probed done) override {
    auto asked = wanted.read();
    if (asked->getKey().size() == 0)
      of_.world_.events.in(of_.takes, [launcher = launcher_, made = std::move(made)] {
        if (launcher->alive())
          made("the key of a simulated group");
      });
    const auto report = messages::local<messages::GroupProbed>(
        "network_prober", [&](messages::GroupProbed::Builder b) {
          const auto group = asked->getGroup();
          b.setNode(launcher_->name());
          b.setCheck(group.getCheck());
          b.setRound(group.getRound());
          b.setGroup(group.getGroup());
          b.setSeconds(std::chrono::duration<double>(of_.takes).count());
          auto sizes = b.initSizes(group.getSizes().size());
          for (unsigned i = 0; i < sizes.size(); ++i) {
            sizes[i].setBytes(group.getSizes()[i]);
            sizes[i].setAllReduceUs(1'000);
            sizes[i].setAllGatherUs(500);
          }
        });
    of_.world_.events.in(2 * of_.takes, [launcher = launcher_, report, done = std::move(done)] {
      if (launcher->alive())
        done(report);
    });
  }

  void end_probe() override {}

 private:
  probes& of_;
  const host_ptr launcher_;
};

std::shared_ptr<probe::probe_host> probes::host_of(const host_ptr& launcher) {
  return std::make_shared<sim_probe_host>(*this, launcher);
}

} // namespace troupe::sim
