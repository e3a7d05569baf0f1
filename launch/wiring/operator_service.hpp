#pragma once

#include "kube/api_server.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/result.hpp"
#include "runtime/os/metrics/text_server.hpp"
#include "runtime/ports/transport.hpp"

#include <memory>
#include <optional>

namespace troupe::launch {

/// What is told of an operator: its metrics at /metrics, whether its actors run at /healthz, and
/// whether the API server answers it at /readyz (docs/metrics.md).
class operator_service {
 public:
  operator_service();
  ~operator_service();
  operator_service(const operator_service&) = delete;
  operator_service& operator=(const operator_service&) = delete;

  /// `to`, whose events are counted. May be called from any thread, also after this object is gone.
  log::sink counting(log::sink to) const;
  /// `to`, whose requests are counted. It may be used for longer than this object lives.
  std::shared_ptr<kube::api_server> counting(std::shared_ptr<kube::api_server> to) const;

  /// Begins to serve, and tells `log` where. Nothing: it opens no port. `refused`, naming the
  /// option and the address.
  result<void> serve(const std::optional<ports::endpoint>& where, const log::sink& log);

 private:
  struct counts;

  std::shared_ptr<counts> counts_;
  std::unique_ptr<os::text_server> server_;
};

} // namespace troupe::launch
