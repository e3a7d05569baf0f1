#pragma once

#include "runtime/base/ids.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/base/result.hpp"
#include "runtime/ports/bulk_links.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace troupe::os {

struct bulk_exchange_options {
  std::string job;
  node_name node;
  std::uint64_t bytes_per_second = 0; ///< of all that this node sends; 0: no bound
  std::size_t peers_max = limits::bulk_peers_max;
};

/// The one place of a node where bulk links come in and from which they go out.
///
/// If each actor that moves many bytes listened for itself, a node would have a port to open in
/// firewalls for each of them, as many places that judge strangers, and rates that together are
/// more than training can spare. Here one listener judges each peer (`link::bulk_refusal`) and
/// hands it to the acceptor of its purpose; one that is judged unfit hears `Refused`, with a line
/// for people. All purposes draw on one rate.
class bulk_exchange final : public ports::bulk_links {
 public:
  /// Listens at `where`, from then on. `refused` with a line if that cannot be.
  static result<std::unique_ptr<bulk_exchange>> open(std::shared_ptr<ports::transport> transport,
                                                     const ports::endpoint& where,
                                                     const bulk_exchange_options& options);
  /// No acceptor hears of more; links that were handed over, or dialled, stay their owners'.
  ~bulk_exchange() override;

  ports::endpoint where() const override;
  /// When this returns, an earlier acceptor is not being called any more, unless it is what calls.
  /// So an acceptor must not wait for a thread that is in here.
  void serve(ports::bulk_purpose purpose, ports::transport::acceptor accept) override;
  void dial(const ports::endpoint& where, ports::bulk_purpose purpose,
            ports::transport::dialled done) override;
  instant may_send(instant now, std::uint64_t bytes) const override;
  void sent(instant now, std::uint64_t bytes) override;

 private:
  class impl;
  explicit bulk_exchange(std::unique_ptr<impl> own);
  std::unique_ptr<impl> impl_;
};

} // namespace troupe::os
