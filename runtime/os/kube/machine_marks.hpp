#pragma once

#include "kube/machine_marks_core.hpp"
#include "runtime/base/log.hpp"
#include "runtime/os/kube/api_access.hpp"
#include "runtime/ports/cluster.hpp"

#include <memory>

namespace troupe::os {

/// The node_marks of a job whose nodes are pods: see kube/machine_marks_core.hpp. A thread of its
/// own talks with the API server.
class machine_marks final : public ports::cluster {
 public:
  static result<std::shared_ptr<machine_marks>>
  open(api_access access, const kube::machine_marks_core::options& options, log::sink log);
  ~machine_marks() override;

  void mark_faulty(const node_name& node, const std::string& address,
                   const std::string& reason) override;
  /// Pods that are lost are the business of what has made them.
  void node_lost(const node_name&, const std::string&, const std::string&) override {}
  /// For at most limits::marks_end_within.
  void end() override;

 private:
  class shell;
  explicit machine_marks(std::unique_ptr<shell> s);

  std::unique_ptr<shell> shell_;
};

} // namespace troupe::os
