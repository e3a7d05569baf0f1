#pragma once

#include "kube/api_server.hpp"
#include "runtime/base/result.hpp"
#include "runtime/os/kube/api_access.hpp"

#include <memory>

namespace troupe::os {

/// The API server that is reached by `access`, on a thread of its own. Calls beyond what may be
/// under way wait, up to limits::api_calls_waiting_max.
class api_server final : public kube::api_server {
 public:
  static result<std::shared_ptr<api_server>> open(api_access access);
  ~api_server() override;

  void call(kube::api_request what, on_answer answered) override;
  std::uint64_t watch(kube::api_request what, on_line line, on_answer ended) override;
  void cut(std::uint64_t watch) override;

 private:
  class shell;
  explicit api_server(std::unique_ptr<shell> s);

  std::unique_ptr<shell> shell_;
};

} // namespace troupe::os
