#pragma once

#include "launch/keeper/keeper_client.hpp"
#include "launch/keeper/keeper_core.hpp"
#include "runtime/base/log.hpp"
#include "runtime/ports/store.hpp"

#include <atomic>
#include <memory>

namespace troupe::launch {

/// store_host of a supervisor in a keeper's care: each store is a process of its own, forked by the
/// keeper, so that what the ranks have told each other outlives the supervisor, and a mistake in
/// parsing what comes from the network ends no supervisor. `open` waits until it listens.
class kept_store_host final : public ports::store_host {
 public:
  kept_store_host(os::io_thread& io, keeper_client& keeper, log::sink log);

  result<std::unique_ptr<ports::open_store>> open(const ports::store_options& options) override;
  std::unique_ptr<ports::open_store> adopt(std::uint16_t port) override;

 private:
  keeper_client& keeper_;
  /// The one that serves; a store that ends unasked is told to the log.
  std::shared_ptr<std::atomic<std::uint64_t>> serving_;
};

/// The other side, in the store's own process: opens a store with `host` as ordered and says on
/// `answer` where it listens, or why not. Answers whether it serves; it does so as long as the
/// result lives.
std::unique_ptr<ports::open_store>
open_as_ordered(const store_order& order, const os::unique_fd& answer, ports::store_host& host);

} // namespace troupe::launch
