#pragma once

#include "runtime/os/net/tls.hpp"

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>

#include <memory>
#include <utility>

namespace troupe::os {

/// Without type erasure of the executor: there is only one.
using tcp_socket =
    boost::asio::basic_stream_socket<boost::asio::ip::tcp, boost::asio::io_context::executor_type>;

/// A TCP connection, encrypted or not; the one place that makes the difference. Used by the I/O
/// thread only.
class stream {
 public:
  /// Without a context the connection stays plain.
  stream(tcp_socket socket, std::shared_ptr<boost::asio::ssl::context> tls)
      : tls_(std::move(tls)), socket_(std::move(socket)) {}

  tcp_socket& socket() { return socket_; }

  bool to_be_encrypted() const { return tls_ != nullptr; }

  /// Null when the connection is plain, or still is.
  SSL* session() { return session_ ? session_->native_handle() : nullptr; }

  /// From here on the stream must stay where it is. Precondition: to_be_encrypted().
  template<class Handler>
  void async_handshake(boost::asio::ssl::stream_base::handshake_type as, Handler&& handler) {
    session_ = std::make_unique<encrypted>(socket_, *tls_);
    session_->async_handshake(as, std::forward<Handler>(handler));
  }

  /// From here on plain: after a failed handshake there is still a peer to be waited for.
  /// Precondition: no operation under way.
  void drop_encryption() { session_.reset(); }

  template<class Handler>
  void async_read_some(boost::asio::mutable_buffer to, Handler&& handler) {
    if (session_)
      session_->async_read_some(to, std::forward<Handler>(handler));
    else
      socket_.async_read_some(to, std::forward<Handler>(handler));
  }

  /// Writes all of it. The buffers stay where they are until the handler is called.
  template<class Buffers, class Handler>
  void async_write(const Buffers& buffers, Handler&& handler) {
    if (session_)
      boost::asio::async_write(*session_, buffers, std::forward<Handler>(handler));
    else
      boost::asio::async_write(socket_, buffers, std::forward<Handler>(handler));
  }

 private:
  using encrypted = boost::asio::ssl::stream<tcp_socket&>;

  std::shared_ptr<boost::asio::ssl::context> tls_;
  tcp_socket socket_;
  std::unique_ptr<encrypted> session_;
};

} // namespace troupe::os
