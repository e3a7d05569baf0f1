#pragma once

#include "runtime/ports/store.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace troupe::testing {

/// Stores that only know whether they are open. All on port 4000.
class fake_stores final : public ports::store_host {
 public:
  // The actors.
  result<std::unique_ptr<ports::open_store>> open(const ports::store_options& o) override;

  std::unique_ptr<ports::open_store> adopt(std::uint16_t port) override;

  // The test.
  /// From now on (or no longer) nothing can be opened, and why.
  void refuse_to_open(std::optional<error> why) { no_store_ = std::move(why); }
  std::size_t open_now() const { return *open_; }
  /// With what the last one was opened.
  const ports::store_options& last() const { return last_; }

 private:
  std::shared_ptr<std::size_t> open_ = std::make_shared<std::size_t>(0);
  std::optional<error> no_store_;
  ports::store_options last_;
};

} // namespace troupe::testing
