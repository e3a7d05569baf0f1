#pragma once

#include "tests/kube/simulated_api_server.hpp"

#include <string>

namespace troupe::testing {

/// What scheduler and kubelets write of the pods of one namespace.
class simulated_kubelet {
 public:
  simulated_kubelet(simulated_api_server& server, std::string name_space)
      : server_(server), at_("/api/v1/namespaces/" + std::move(name_space) + "/pods/") {}

  void bind(const std::string& pod, const std::string& machine);
  void run(const std::string& pod, const std::string& address);
  /// Its first container ends; a reason such as "OOMKilled" is the container's.
  void end(const std::string& pod, int exit_code, const std::string& reason = "");
  /// Without an exit code: "Evicted", "Preempting", "NodeLost".
  void evict(const std::string& pod, const std::string& reason = "Evicted");
  /// The condition DisruptionTarget, as before a preemption.
  void disrupt(const std::string& pod);
  void unschedulable(const std::string& pod, const std::string& message);
  void waiting(const std::string& pod, const std::string& reason, const std::string& message);
  /// One that was deleted, and is gone for good now.
  void terminated(const std::string& pod) { server_.remove(at_ + pod); }

  std::string path(const std::string& pod) const { return at_ + pod; }

 private:
  void phase(const std::string& pod, const char* phase, boost::json::object more);

  simulated_api_server& server_;
  std::string at_;
};

} // namespace troupe::testing
