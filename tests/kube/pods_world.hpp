#pragma once

#include "kube/node_pods_core.hpp"
#include "kube/watch_core.hpp"
#include "tests/kube/simulated_kubelet.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe::testing {

/// A master's pods before a watch and a server that fail as a seed says, with kubelets, users and
/// other masters that do what they like. Throws invariant_broken as soon as something is there that
/// must not be.
class pods_world {
 public:
  /// `strict`: nothing but this master makes pods, so that no rank has two at any time.
  pods_world(std::uint64_t seed, bool strict);

  /// Something happens, and time passes.
  void strike();
  /// All faults are over, kubelets do their work, and time passes. Then there is one live pod for
  /// each rank that is wanted, and none beyond them.
  void let_be();
  /// The job ends: no live pod is left.
  void end();

  struct tally {
    std::uint64_t made = 0, over = 0, given_up = 0, done = 0, restarts = 0, lists = 0;
  };
  const tally& count() const { return count_; }

 private:
  using deed = std::function<void()>;

  void at(duration later, deed what);
  void pass(duration d);
  void pump();
  void perform(const kube::node_pods_core::effects& effects);
  void perform(const kube::watch_core::effects& effects);
  void ask(const kube::api_request& what, std::function<void(const kube::api_answer&)> answered);
  void open(std::uint64_t number, const kube::api_request& what);
  void start();
  void restart();
  void want(std::uint32_t replicas);
  void strike_pod(const std::string& name, const kube::node_pod& pod);
  std::vector<kube::node_pod> pods() const;
  void kubelets_work();
  void make_other();
  void check_one_each() const;
  std::map<std::uint32_t, int> live() const;
  void note(const kube::node_pods_core::effect& e);
  duration some(duration most);

  random_source random_;
  bool strict_;
  simulated_api_server server_;
  simulated_kubelet kubelet_{server_, "jobs"};
  instant now_{};
  std::multimap<instant, deed> agenda_;
  /// Of the master's life: what was asked for in an earlier one is answered to no one.
  std::uint64_t life_ = 0;
  std::optional<kube::node_pods_core> core_;
  std::optional<kube::watch_core> watch_;
  std::map<std::uint64_t, std::uint64_t> open_; ///< the server's watches, by the core's number
  std::uint32_t replicas_ = 0;
  std::size_t under_way_ = 0; ///< requests that have not reached the server
  std::set<std::uint32_t> given_up_, done_;
  std::uint64_t other_id_ = 1'000;
  tally count_;
};

} // namespace troupe::testing
