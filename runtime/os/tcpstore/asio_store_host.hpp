#pragma once

#include "runtime/base/log.hpp"
#include "runtime/base/time.hpp"
#include "runtime/os/io_thread.hpp"
#include "runtime/ports/store.hpp"
#include "runtime/tcpstore/store_core.hpp"

#include <memory>
#include <mutex>
#include <optional>

namespace troupe::os {

struct store_host_options {
  /// Hears of clients that were sent away, one line each.
  log::sink log = [](const std::string&, const log::event&) {};
  tcpstore::bounds bounds;
  duration accept_backoff = limits::accept_backoff;
};

/// ports::store_host over TCP: all stores of a process on one thread of their own, which begins
/// with the first of them. Outlives the stores it opened.
class asio_store_host final : public ports::store_host {
 public:
  explicit asio_store_host(store_host_options options = {}) : options_(std::move(options)) {}

  result<std::unique_ptr<ports::open_store>> open(const ports::store_options& options) override;

 private:
  store_host_options options_;
  std::mutex mutex_;
  std::optional<io_thread> thread_;
};

} // namespace troupe::os
