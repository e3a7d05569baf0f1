#pragma once

#include "runtime/base/invariant.hpp"
#include "runtime/os/io_thread.hpp"
#include "runtime/os/net/asio_transport.hpp"
#include "tests/link/certificates.hpp"
#include "tests/link/transport_contract.hpp"

#include <chrono>
#include <memory>
#include <thread>

namespace troupe::testing {

/// Looks at `condition` until it is true or patience is gone. Patience is for failures only: a test
/// that passes never uses it up.
template<class Condition>
bool eventually(const Condition& condition, duration patience = 1min) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until)
      return false;
    std::this_thread::sleep_for(500us);
  }
  return true;
}

/// The product's options, but for its deadlines: a test that is not about one must not fail because
/// this machine, or one of its processors, stalls for some seconds.
inline os::transport_options calm_options() {
  os::transport_options options;
  options.link.lease = 1h;
  options.link.dial_within = options.link.handshake_within = 1min;
  return options;
}

/// Real sockets on loopback, both ends in this process.
class asio_world {
 public:
  explicit asio_world(os::transport_options options = calm_options()) {
    auto made = os::asio_transport::make(io_, std::move(options));
    invariant(made.has_value(), made ? "" : made.error().what);
    transport_ = std::move(*made);
  }

  ports::transport& transport() { return *transport_; }
  ports::endpoint place() const { return {"127.0.0.1", 0}; }

  template<class Condition>
  bool until(const Condition& condition) const {
    return eventually(condition);
  }

 private:
  os::io_thread io_;
  std::unique_ptr<os::asio_transport> transport_;
};

/// Also more patience of a closing link: sanitizers on a busy machine take
/// longer than a second for what a product does in a millisecond.
inline os::transport_options contract_options() {
  auto options = calm_options();
  options.link.linger_max = 3s;
  return options;
}

class asio_plain : public asio_world {
 public:
  asio_plain() : asio_world(contract_options()) {}
};

/// The same with TLS; one certificate serves as the node's and the master's.
class asio_tls {
 public:
  asio_tls() {
    auto options = contract_options();
    options.proven_by = authority_.issue("both", {"node-0", os::master_name});
    world_ = std::make_unique<asio_world>(std::move(options));
  }

  ports::transport& transport() { return world_->transport(); }
  ports::endpoint place() const { return world_->place(); }

  template<class Condition>
  bool until(const Condition& condition) const {
    return eventually(condition);
  }

 private:
  temporary_folder folder_;
  authority authority_{folder_};
  std::unique_ptr<asio_world> world_;
};

} // namespace troupe::testing
