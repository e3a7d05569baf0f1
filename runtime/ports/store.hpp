#pragma once

#include "runtime/base/result.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace troupe::ports {

/// Whom a store serves. Its protocol has no authentication.
enum class store_reach : std::uint8_t {
  this_machine, ///< Connections from elsewhere are closed unread.
  network,      ///< Any client that can reach the port, on every interface.
};

struct store_options {
  store_reach reach = store_reach::this_machine;
  /// As what the clients will dial this machine: a name or an address.
  std::string address;
  std::uint16_t port = 0; ///< 0 picks a free one
};

/// A store that serves. Dropping it ends all its connections, and what it held is gone.
class open_store {
 public:
  virtual ~open_store() = default;
  /// Never 0.
  virtual std::uint16_t port() const = 0;
};

/// Key-value stores in PyTorch's TCPStore protocol, for the workers of this machine's job: real in
/// products, simulated in tests. Thread-safe; nothing blocks.
class store_host {
 public:
  virtual ~store_host() = default;

  /// `refused` with a line for the user if the port is busy or the address not this machine's.
  virtual result<std::unique_ptr<open_store>> open(const store_options& options) = 0;

  /// The one that the supervisor before this one had opened last, and did not close; nothing if it
  /// serves no more.
  virtual std::unique_ptr<open_store> adopt(std::uint16_t /*port*/) { return nullptr; }
};

} // namespace troupe::ports
