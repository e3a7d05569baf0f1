#pragma once

#include "runtime/base/time.hpp"
#include "runtime/ports/transport.hpp"

#include <cstdint>
#include <functional>

/// The way between nodes for many bytes.
///
/// A sign of life must not wait behind a gigabyte. So pieces of snapshots, and what is sent to
/// measure a network, have links of their own, on a thread of its own. All of them come in at one
/// place, prove themselves in one way, and share one rate: whatever is sent there next needs no
/// port, no proof and no bound of its own.
namespace troupe::ports {

using bulk_purpose = messages::Hello::Purpose;

/// Thread-safe; nothing blocks.
class bulk_links {
 public:
  virtual ~bulk_links() = default;

  /// Where other nodes dial this one. Port 0: nowhere.
  virtual endpoint where() const = 0;

  /// From now on peers of this job that dial for `purpose` go to `accept`, from the links' thread;
  /// an earlier acceptor hears of no more. Without an acceptor peers are refused. Empty: there is
  /// none any more.
  virtual void serve(bulk_purpose purpose, transport::acceptor accept) = 0;

  /// As transport::dial, with a hello of this node as a peer.
  virtual void dial(const endpoint& where, bulk_purpose purpose, transport::dialled done) = 0;

  /// When so many bytes may be sent, so that all that this node sends keeps its rate; and that they
  /// have been.
  virtual instant may_send(instant now, std::uint64_t bytes) const = 0;
  virtual void sent(instant now, std::uint64_t bytes) = 0;
};

/// Of a node that no other can dial.
class no_bulk_links final : public bulk_links {
 public:
  endpoint where() const override { return {}; }
  void serve(bulk_purpose, transport::acceptor) override {}
  void dial(const endpoint&, bulk_purpose, transport::dialled done) override {
    done(failure(errc::refused, "this node has no links to other nodes"));
  }
  instant may_send(instant now, std::uint64_t) const override { return now; }
  void sent(instant, std::uint64_t) override {}
};

} // namespace troupe::ports
