#pragma once

#include "runtime/link/admission_core.hpp"
#include "runtime/link/refusal_notes.hpp"
#include "runtime/os/net/asio_transport.hpp"
#include "runtime/os/net/link_shell.hpp"
#include "runtime/os/net/listening.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace troupe::os {

/// Accepts connections on one or more addresses of one port and hands on those that prove
/// themselves; `link::admission_core` decides in which order. Belongs to the I/O thread, but for
/// make() and shut().
class accept_loop : public std::enable_shared_from_this<accept_loop> {
 public:
  static result<std::shared_ptr<accept_loop>> make(boost::asio::io_context& context,
                                                   const transport_options& options,
                                                   const std::shared_ptr<authenticator>& auth,
                                                   const ports::endpoint& where,
                                                   ports::transport::acceptor accept);

  accept_loop(boost::asio::io_context& context, const transport_options& options,
              std::unique_ptr<authenticator::server_side> server_side,
              ports::transport::acceptor accept);

  /// Begins to accept.
  void start();

  /// The port is free when this returns; on any thread, once. Unproven connections are dropped soon
  /// after.
  void shut();

  std::uint16_t port() const { return port_; }

 private:
  /// One address on which we listen.
  struct place {
    tcp_acceptor acceptor;
    io_timer pause;
  };

  /// A connection that has not proven itself: a socket while it waits, then a shell.
  struct unproven {
    std::unique_ptr<tcp_socket> socket;
    std::shared_ptr<link_shell> shell;
    std::string peer;
  };
  using id = link::admission_core::id;

  void await(place& at);
  void accept_ready(place& at);
  void out_of_resources(place& at, int number);
  void pause(place& at);
  void admit(int descriptor, const boost::asio::ip::tcp::endpoint& from);
  void perform(const link::admission_core::effects& todo);
  void begin(id which);
  void drop(id which, const error& why);
  void ended(id which, bool proven);
  void note(const std::string& peer, const error& why);
  void tick();
  void wake_when_due();

  boost::asio::io_context& context_;
  transport_options options_;
  std::unique_ptr<authenticator::server_side> server_side_;
  ports::transport::acceptor accept_;
  const std::shared_ptr<instant> heard_ =
      std::make_shared<instant>(); ///< any peer that has proven itself
  std::vector<place> places_;
  std::uint16_t port_ = 0;
  bool starved_ = false; ///< accepting failed last time
  bool shut_ = false;
  link::admission_core admission_;
  link::refusal_notes notes_;
  id last_ = 0;
  std::map<id, unproven> unproven_;
  io_timer timer_;
};

} // namespace troupe::os
