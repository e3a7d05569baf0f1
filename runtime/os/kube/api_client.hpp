#pragma once

#include "kube/api.hpp"
#include "runtime/os/io_thread.hpp"
#include "runtime/os/kube/api_access.hpp"

#include <functional>
#include <memory>

namespace troupe::os {

struct api_shared;
class api_exchange;

/// Calls to the API of Kubernetes, by HTTP/1.1 over TLS 1.2 or newer. The server must prove the
/// name or address that it was called by.
class api_client {
 public:
  /// Errors: what is wrong with the file of the authority.
  static result<std::unique_ptr<api_client>> open(io_thread& io, api_access access);
  /// Calls that are under way are not answered.
  ~api_client();

  using done = std::function<void(const kube::api_answer&)>;
  /// On the I/O thread, which calls `answered` as well: once, within limits::api_call_within.
  void call(const kube::api_request& what, done answered);

  using line = std::function<void(std::string)>;
  /// The same for a watch: `told` for each line, then `ended`; it may be forgotten before.
  std::shared_ptr<api_exchange> watch(const kube::api_request& what, line told, done ended);

 private:
  explicit api_client(std::shared_ptr<api_shared> s) : shared_(std::move(s)) {}

  std::shared_ptr<api_shared> shared_;
};

} // namespace troupe::os
