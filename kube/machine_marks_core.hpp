#pragma once

#include "kube/api.hpp"
#include "runtime/base/back_off.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/random.hpp"
#include "runtime/base/time.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::kube {

/// How a machine is marked.
enum class machine_mark : std::uint8_t {
  taint, ///< troupe/faulty=JOB:NoSchedule; pods that tolerate it may still come
  cordon ///< unschedulable, for all pods
};

/// Marks the machines under broken nodes, so that the scheduler puts nothing there.
///
/// A node of ours is a pod, and is known by its address; the one in the master's own pod may have
/// reached it by loopback, and is known by the pod's name. So each mark takes three requests:
///
///     which pod is this → the machine as it is now → the change of it
///
/// The taints of a machine are one list that is replaced as a whole, and others change it as well.
/// So the change is a JSON patch that tests the version that was read (`resourceVersion`); if
/// another one was faster, the machine is read again. Machines are marked one after the other. One
/// that cannot be marked is told with the command that does it by hand.
class machine_marks_core {
 public:
  struct options {
    std::string name_space; ///< of the job's pods
    std::string own_pod;    ///< the name of this one
    std::string job;
    machine_mark how = machine_mark::taint;
    std::uint64_t seed = 0; ///< for jitter
  };

  /// Answered by answered() under the same number, in any case.
  struct call {
    std::uint64_t number = 0;
    api_request what;
  };
  struct note {
    log::event event;
  };
  using effect = std::variant<call, note>;
  using effects = std::vector<effect>;

  explicit machine_marks_core(options o);

  /// `address`: as other nodes reach the node. One that waits already is not marked twice.
  effects mark_faulty(instant now, const node_name& node, const std::string& address,
                      const std::string& reason);
  effects answered(instant now, std::uint64_t number, const api_answer& a);
  effects tick(instant now);
  /// Nothing is called any more: tells which machines are left unmarked.
  effects ended();
  std::optional<instant> next_wakeup() const { return again_at_; }
  /// A machine is being marked, or waits for it.
  bool is_busy() const { return !waiting_.empty(); }

 private:
  struct wanted {
    node_name node;
    std::string address;
    std::string reason;
    int attempts = 0;
    std::string trouble; ///< of the last attempt
    std::string machine; ///< once the pod is found
  };
  enum class step : std::uint8_t { pod, machine, change };

  void begin(effects& out);
  void ask(effects& out, api_request what);
  void take_pod(effects& out, const api_answer& a);
  void take_machine(effects& out, const api_answer& a);
  void take_change(effects& out, instant now, const api_answer& a);
  void try_again(effects& out, instant now, const api_answer& a);
  void give_up(effects& out, const std::string& why);
  void done(effects& out);
  note not_marked(const wanted& w, const std::string& why) const;
  std::string by_hand(const std::string& machine) const;

  options options_;
  std::deque<wanted> waiting_; ///< the first one is being marked
  step step_ = step::pod;
  std::uint64_t last_number_ = 0;
  std::optional<std::uint64_t> asked_;
  std::optional<instant> again_at_;
  back_off again_;
  random_source random_;
};

} // namespace troupe::kube
