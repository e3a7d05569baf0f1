#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/result.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace troupe::ports {

/// A place to dial or to listen on. `host` is a name or an address (IPv6 without brackets).
struct endpoint {
  std::string host;
  std::uint16_t port = 0;

  friend bool operator==(const endpoint& a, const endpoint& b) {
    return a.host == b.host && a.port == b.port;
  }
  friend bool operator<(const endpoint& a, const endpoint& b) {
    return a.host != b.host ? a.host < b.host : a.port < b.port;
  }
};

/// "host:port", IPv6 in brackets.
std::string to_string(const endpoint& e);

/// What the end of a link tells about the peer.
enum class link_end : std::uint8_t {
  /// The connection was closed or has broken. Its process has ended, or something on the way let go
  /// of it; a peer that lives dials again at once.
  closed,
  /// Nothing was heard for as long as the lease allows.
  silent,
  /// The same of all peers at this listening place, at once: this process may be the one cut off.
  isolated,
  /// Closed, but while we were away ourselves (stopped, or starved): the peer may have taken us for
  /// dead and be waiting before it dials again.
  paused_here,
};

struct link_ending {
  link_end how = link_end::closed;
  std::string reason;
};

/// What an owner hears of its connection. Called from the transport's thread; neither may block,
/// and both should only pass on what they got to an actor. Nothing is called after `on_closed`,
/// which is called exactly once.
struct connection_events {
  std::function<void(messages::any_msg)> on_message;
  std::function<void(link_ending)> on_closed;
};

/// One proven, ordered link. Thread-safe. Messages arrive at the other end in order or the link
/// ends; which of the last ones arrived is then unknown. Dropping the last reference closes it.
class connection {
 public:
  virtual ~connection() = default;

  /// Starts delivery, once. Until then nothing is read beyond the handshake, so the owner may take
  /// its time to exist; if the link has ended meanwhile, `on_closed` is called now (from the
  /// transport's thread).
  virtual void open(connection_events events) = 0;

  /// Queues a message, also before open(). `overloaded` when the peer has fallen behind by more
  /// than limits::send_queue_max: the link is then closed. `closed` when it has ended already.
  virtual result<void> send(messages::any_msg m) = 0;

  /// The owner has taken one delivered message. Reading pauses when limits::credit_messages are
  /// outstanding.
  virtual void taken() = 0;

  /// Ends the link after what is queued has been sent, or a second. `on_closed` will be called with
  /// `reason`.
  virtual void close(std::string reason) = 0;

  /// The other end, for people: "10.0.0.7:51234".
  virtual std::string peer() const = 0;
};

using connection_ptr = std::shared_ptr<connection>;

/// A peer that has proven itself: certificate (or loopback) and a well-formed Hello, which has not
/// been judged otherwise.
struct peer {
  connection_ptr link;
  messages::msg<messages::Hello> hello;
};

/// An open listening place; closes when dropped.
class listener {
 public:
  virtual ~listener() = default;
  /// Where it really listens (the port is never 0).
  virtual endpoint where() const = 0;
};

/// Connections between the processes of a job: Asio with TLS in products, simulated in tests.
class transport {
 public:
  virtual ~transport() = default;

  /// Called from the transport's thread for every proven peer; its new owner calls link->open().
  using acceptor = std::function<void(peer)>;

  /// Port 0 picks a free one. `refused` with a line for the user if the address is busy, is not
  /// ours, or may not be used without certificates.
  virtual result<std::unique_ptr<listener>> listen(const endpoint& where, acceptor accept) = 0;

  using dialled = std::function<void(result<connection_ptr>)>;

  /// Dials, proves itself and sends `hello` as the first frame. In a hello without an address the
  /// transport writes the one that this link comes from, by which others reach this machine: it is
  /// found anew for each link, since interfaces and routes may come up late and change.
  ///
  /// Answers once, from the transport's thread, within limits::dial_within: a connection to open(),
  /// or `unavailable` (try again), or `closed` (try again; the machine was reached, and no process
  /// of this job answers there), or `refused` (trying again changes nothing as long as the same
  /// process answers there).
  virtual void dial(const endpoint& where, messages::msg<messages::Hello> hello, dialled done) = 0;
};

} // namespace troupe::ports
