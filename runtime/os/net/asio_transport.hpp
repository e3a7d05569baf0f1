#pragma once

#include "runtime/base/log.hpp"
#include "runtime/link/options.hpp"
#include "runtime/os/io_thread.hpp"
#include "runtime/os/net/authenticator.hpp"
#include "runtime/ports/transport.hpp"

#include <boost/asio/ip/address.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::os {

struct transport_options {
  /// With no_proof and local_token only loopback addresses may be used.
  proof proven_by = no_proof{};
  link::options link;
  /// Asked for each new link, by the I/O thread, where it changes; empty: `link`.
  std::function<link::options()> timing;
  link::options timing_now() const { return timing ? timing() : link; }
  /// The address or name of this machine from which to dial. It has no effect if it is not this
  /// machine's, or leads nowhere near the dialled peer. Empty: the kernel chooses.
  std::string dial_from;
  std::size_t unproven_max = limits::unproven_connections_max;
  duration unproven_grace = limits::unproven_grace;
  duration accept_backoff = limits::accept_backoff;
  /// Hears of connections that never proved themselves.
  log::sink log = [](const std::string&, const log::event&) {};
};

/// ports::transport over TCP, with TLS 1.3 and a proof on both sides: a certificate, or a token.
///
/// Identity: the node in a Hello must be among the names (DNS or address) in the subject
/// alternative names of its certificate; the master's certificate must carry the host that was
/// dialled, or `master_name`. A token belongs to all of the job: a peer that proves it may take any
/// name.
///
/// The I/O thread must outlive the transport, its listeners and every connection.
class asio_transport final : public ports::transport {
 public:
  /// Reads what there is to be read; `invalid` with one line for the user if they are not in order,
  /// or the options contradict each other.
  static result<std::unique_ptr<asio_transport>> make(io_thread& io, transport_options options);

  result<std::unique_ptr<ports::listener>> listen(const ports::endpoint& where,
                                                  acceptor accept) override;

  /// Tries all addresses of a name, one after the other, each with its share of the time that is
  /// left.
  void dial(const ports::endpoint& where, messages::msg<messages::Hello> hello,
            dialled done) override;

 private:
  asio_transport(io_thread& io, transport_options options, std::shared_ptr<authenticator> auth);

  io_thread& io_;
  transport_options options_;
  std::shared_ptr<authenticator> authenticator_;
  std::vector<boost::asio::ip::address> own_; ///< as `dial_from` says
};

} // namespace troupe::os
