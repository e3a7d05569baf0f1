#pragma once

#include "runtime/os/net/listening.hpp"
#include "runtime/os/net/stream.hpp"
#include "runtime/os/tcpstore/asio_store_host.hpp"

#include <boost/asio/steady_timer.hpp>

#include <memory>
#include <string>
#include <vector>

namespace troupe::os {

/// The sockets of one store. Belongs to the store's thread, but for the constructor, start() and
/// shut().
///
/// All connections are read into one buffer in turn, so an idle one costs no buffer; what was read
/// at once is answered in one write, as far as the socket takes it.
class store_server : public std::enable_shared_from_this<store_server> {
 public:
  store_server(boost::asio::io_context& context, const store_host_options& options,
               ports::store_reach reach, listening open);

  void start();

  /// No connection is accepted when this returns; the others end soon after. On any thread, once.
  void shut();

 private:
  struct listener {
    tcp_acceptor acceptor;
    boost::asio::steady_timer pause;
  };
  struct session {
    tcp_socket socket;
    tcpstore::client_id who;
    bool awaits_input = false;
    bool awaits_room = false; ///< the kernel takes no more for now
  };
  using session_ptr = std::shared_ptr<session>;

  void await(listener& at);
  void accept_ready(listener& at);
  void out_of_resources(listener& at, int number);
  void admit(int descriptor, const boost::asio::ip::tcp::endpoint& from);
  bool welcome(const tcp_socket& socket, const boost::asio::ip::tcp::endpoint& from) const;

  void await_input(const session_ptr& s);
  void read(const session_ptr& s);
  void await_room(const session_ptr& s);
  void write(const session_ptr& s);
  void follow_changes();
  void drop(const session_ptr& s);
  void send_away(const session_ptr& s, const std::string& why);
  void note(log::level severity, const char* name, const std::string& text) const;

  boost::asio::io_context& context_;
  store_host_options options_;
  ports::store_reach reach_;
  std::vector<listener> listeners_;
  tcpstore::store_core core_;
  std::vector<session_ptr> sessions_; ///< by client; null for none
  /// Its pages are taken when a request first fills them: a store starts with every generation.
  std::unique_ptr<char[]> buffer_;
  bool starved_ = false; ///< accepting failed last time
  bool shut_ = false;
};

} // namespace troupe::os
