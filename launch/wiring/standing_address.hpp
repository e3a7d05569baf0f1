#pragma once

#include "runtime/ports/transport.hpp"

#include <functional>
#include <memory>

namespace troupe::launch {

/// A transport of which one listening place stays open while its owners change: between two of them
/// peers are turned away, and dial again. If it were closed and opened, another launcher of the job
/// on this machine would find the address free, and run a master of its own.
class standing_address final : public ports::transport {
 public:
  explicit standing_address(std::shared_ptr<ports::transport> over);

  /// The first call opens the place; each later one takes it over, wherever it says.
  result<std::unique_ptr<ports::listener>> listen(const ports::endpoint& where,
                                                  acceptor accept) override;
  void dial(const ports::endpoint& where, messages::msg<messages::Hello> hello,
            dialled done) override;

 private:
  struct shared;
  class share;

  std::shared_ptr<ports::transport> over_;
  std::shared_ptr<shared> shared_;
};

} // namespace troupe::launch
