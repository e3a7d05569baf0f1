#pragma once

#include "runtime/os/net/asio_transport.hpp"
#include "runtime/os/net/link_shell.hpp"
#include "runtime/os/net/listening.hpp"

#include <list>
#include <memory>
#include <vector>

namespace troupe::os {

/// Accepts connections on one or more addresses of one port and hands on those that prove
/// themselves. Strangers are bounded: past the limit the oldest goes, or accepting waits until he
/// has had his time. Belongs to the I/O thread, but for make() and shut().
class accept_loop : public std::enable_shared_from_this<accept_loop> {
 public:
  static result<std::shared_ptr<accept_loop>> make(boost::asio::io_context& context,
                                                   const transport_options& options,
                                                   const std::shared_ptr<guard>& at_door,
                                                   const ports::endpoint& where,
                                                   ports::transport::acceptor accept);

  accept_loop(boost::asio::io_context& context, const transport_options& options,
              std::unique_ptr<guard::door> door, ports::transport::acceptor accept);

  /// Begins to accept.
  void start();

  /// The port is free when this returns; on any thread, once. Strangers are let go soon after.
  void shut();

  std::uint16_t port() const { return port_; }

 private:
  /// One address on which we listen.
  struct place {
    tcp_acceptor acceptor;
    io_timer pause;
  };

  /// Someone who has not proven himself.
  struct stranger {
    std::shared_ptr<link_shell> shell;
    instant since;
  };

  void await(place& at);
  void accept_ready(place& at);
  void out_of_resources(place& at, int number);
  void pause(place& at);
  bool full() const;
  void admit(int descriptor, const boost::asio::ip::tcp::endpoint& from);
  void note(const std::string& peer, const error& why) const;

  boost::asio::io_context& context_;
  transport_options options_;
  std::unique_ptr<guard::door> door_;
  ports::transport::acceptor accept_;
  const std::shared_ptr<instant> heard_ =
      std::make_shared<instant>(); ///< anybody who has proven himself
  std::vector<place> places_;
  std::uint16_t port_ = 0;
  bool starved_ = false; ///< accepting failed last time
  bool shut_ = false;
  std::list<stranger> unproven_; ///< oldest first
};

} // namespace troupe::os
