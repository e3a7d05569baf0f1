#pragma once

#include "kube/job_cluster_core.hpp"
#include "runtime/base/log.hpp"
#include "runtime/os/kube/api_access.hpp"
#include "runtime/ports/cluster.hpp"

#include <memory>

namespace troupe::os {

/// The cluster of a job whose nodes are pods: see kube/job_cluster_core.hpp. A thread of its own
/// talks with the API server.
class job_cluster final : public ports::cluster {
 public:
  static result<std::shared_ptr<job_cluster>>
  open(api_access access, const kube::job_cluster_core::options& options, log::sink log);
  ~job_cluster() override;

  void listen(listener by) override;
  bool replaces() const override;
  void mark_faulty(const node_name& node, const std::string& address,
                   const std::string& reason) override;
  void node_lost(const node_name& node, const std::string& address,
                 const std::string& reason) override;
  void replace(const node_name& node, const std::string& address, bool is_broken,
               const std::string& reason) override;
  void want(std::uint32_t nodes) override;
  /// For at most limits::cluster_ends_within.
  void end() override;

 private:
  class shell;
  explicit job_cluster(std::unique_ptr<shell> s);

  std::unique_ptr<shell> shell_;
};

} // namespace troupe::os
