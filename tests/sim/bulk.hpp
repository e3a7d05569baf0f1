#pragma once

#include "runtime/base/rate_limiter.hpp"
#include "runtime/ports/bulk_links.hpp"
#include "tests/sim/host.hpp"
#include "tests/sim/network.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace troupe::sim {

/// The twin of runtime/os/bulk/bulk_exchange, for one life of a node supervisor: it judges peers as
/// that does, and its links are the simulated network's, with all that goes wrong there.
class sim_bulk_links final : public ports::bulk_links {
 public:
  /// Of every node, at its own name: a supervisor that is started again listens where the last one
  /// did.
  static constexpr std::uint16_t port = 29'402;

  sim_bulk_links(network& of, const host_ptr& h, std::string job);
  ~sim_bulk_links() override;

  ports::endpoint where() const override;
  void serve(ports::bulk_purpose purpose, ports::transport::acceptor accept) override;
  void dial(const ports::endpoint& where, ports::bulk_purpose purpose,
            ports::transport::dialled done) override;
  instant may_send(instant now, std::uint64_t bytes) const override;
  void sent(instant now, std::uint64_t bytes) override;

 private:
  /// Outlives this while a peer is being met.
  struct reception;

  const std::string job_, node_;
  const std::shared_ptr<ports::transport> transport_;
  messages::author author_;
  rate_limiter rate_;
  std::shared_ptr<reception> reception_;
  std::unique_ptr<ports::listener> listener_;
};

} // namespace troupe::sim
