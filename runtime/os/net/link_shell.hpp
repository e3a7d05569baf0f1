#pragma once

#include "runtime/link/link_core.hpp"
#include "runtime/os/net/stream.hpp"
#include "runtime/ports/transport.hpp"

#include <boost/asio/basic_waitable_timer.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace troupe::os {

using io_executor = boost::asio::io_context::executor_type;
using io_timer = boost::asio::basic_waitable_timer<
    std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>, io_executor>;

inline instant now() {
  return std::chrono::steady_clock::now();
}

/// A link_core with a socket and a timer: does what the core asks for and decides nothing. It keeps
/// itself alive while an operation of its is under way, which is until the core has closed.
///
/// The core is under a lock, so that send() answers at once on any thread; everything else belongs
/// to the I/O thread. Results of events of other threads are fetched by the I/O thread, one post
/// for many of them.
class link_shell : public std::enable_shared_from_this<link_shell> {
 public:
  /// Which of the two is called, once, says how the handshake ended. `on_proven` gets the Hello at
  /// the accepting end only.
  struct outcome {
    std::function<void(std::shared_ptr<link_shell>, messages::msg<messages::Hello>)> on_proven;
    std::function<void(error)> on_failed;
  };

  /// `heard` is when anybody was heard at the place where this one came in.
  link_shell(link::link_core core, link::role as, stream connected, std::string peer,
             std::shared_ptr<instant> heard = nullptr);

  /// From the I/O thread, once. `dialled_host` is what a dialler checks the certificate against.
  void start(outcome told, std::string dialled_host = {});

  // Any thread; see ports::connection.
  void open(ports::connection_events events);
  result<void> send(messages::any_msg m);
  void taken();
  void close(error why);

  /// Ends it at once, whatever is queued. I/O thread.
  void abort(error why);

  const std::string& peer() const { return peer_; }

 private:
  template<class Event>
  void step(Event&& event);
  void kick();
  void pump();
  void act(link::effects todo);

  void encrypt(const std::string& dialled_host);
  void read();
  void did_read(const boost::system::error_code& ec, std::size_t n);
  void write(std::vector<link::out_frame> batch);
  void write_encrypted();
  void did_write(const boost::system::error_code& ec);
  void wake_at(instant when);
  void finish(ports::link_end how, error why);
  error in_words(const boost::system::error_code& ec, const char* when);

  std::mutex mutex_;
  link::link_core core_; // under mutex_
  bool kicked_ = false;  // under mutex_

  const link::role role_;
  const std::string peer_;
  const std::shared_ptr<instant> heard_;
  stream stream_;
  io_timer timer_;
  instant timer_set_for_ = instant::max();
  bool reading_ = false;
  std::vector<kj::byte> read_buffer_;
  std::size_t last_read_ = 0;
  std::vector<link::out_frame> writing_;
  std::vector<boost::asio::const_buffer> gathered_; ///< `writing_` as it is
  std::vector<kj::byte> flat_;                      ///< a part of `writing_`, in one piece
  link::frames_place encrypted_;                    ///< `writing_` up to here is in flat_, or sent
  outcome told_;
  ports::connection_events events_;
  bool opened_ = false;
  std::optional<ports::link_ending> ended_;
};

/// What owners hold: closes the link when dropped.
class asio_connection final : public ports::connection {
 public:
  explicit asio_connection(std::shared_ptr<link_shell> shell) : shell_(std::move(shell)) {}
  ~asio_connection() override { shell_->close({errc::closed, "its owner let go of the link"}); }

  void open(ports::connection_events events) override { shell_->open(std::move(events)); }
  result<void> send(messages::any_msg m) override { return shell_->send(std::move(m)); }
  void taken() override { shell_->taken(); }
  void close(std::string reason) override { shell_->close({errc::closed, std::move(reason)}); }
  std::string peer() const override { return shell_->peer(); }

 private:
  std::shared_ptr<link_shell> shell_;
};

} // namespace troupe::os
