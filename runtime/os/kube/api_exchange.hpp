#pragma once

#include "kube/api.hpp"
#include "runtime/os/kube/api_access.hpp"
#include "runtime/os/kube/limits.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include <functional>
#include <memory>
#include <string>

namespace troupe::os {

/// What all exchanges of a client have in common.
struct api_shared {
  boost::asio::io_context& context;
  api_access access;
  boost::asio::ssl::context tls{boost::asio::ssl::context::tls_client};
  std::size_t under_way = 0;
  bool closed = false;

  api_shared(boost::asio::io_context& c, api_access a) : context(c), access(std::move(a)) {}
};

/// One connection with one request: calls are too few to keep it. On the I/O thread only; it lives
/// until it has ended.
class api_exchange : public std::enable_shared_from_this<api_exchange> {
 public:
  using done = std::function<void(const kube::api_answer&)>;
  using line = std::function<void(std::string)>;

  /// With `told` the answer is a watch: lines, until the server ends them.
  api_exchange(std::shared_ptr<api_shared> s, line told, done ended);
  ~api_exchange();
  api_exchange(const api_exchange&) = delete;
  api_exchange& operator=(const api_exchange&) = delete;

  void start(const kube::api_request& what);
  /// Nothing is told any more.
  void forget();

 private:
  using error_code = boost::system::error_code;
  using tcp = boost::asio::ip::tcp;

  /// What follows a step, if it went well.
  template<class... Args>
  auto on(const char* step, void (api_exchange::*next)(Args...)) {
    return [self = shared_from_this(), step, next](const error_code& ec, const auto&... args) {
      if (!self->ended_)
        return;
      if (ec)
        return self->fail(std::string(step) + ": " + ec.message(),
                          ec == boost::beast::http::error::body_limit);
      if constexpr (sizeof...(Args) == 0)
        (self.get()->*next)();
      else
        (self.get()->*next)(args...);
    };
  }

  void within(duration limit);
  void connect(tcp::resolver::results_type found);
  void prove();
  void write();
  void read();
  void take_head();
  void read_lines();
  void take_lines(const error_code& ec);
  void end();
  void give_up();
  void fail(const std::string& why, bool is_too_large = false);
  void conclude(const kube::api_answer& a);

  std::shared_ptr<api_shared> shared_;
  line told_;
  done ended_;
  tcp::resolver resolver_;
  boost::asio::steady_timer deadline_;
  boost::asio::ssl::stream<boost::beast::tcp_stream> stream_;
  boost::beast::http::request<boost::beast::http::string_body> request_;
  boost::beast::http::response_parser<boost::beast::http::string_body> parser_;
  boost::beast::flat_buffer buffer_{limits::api_answer_max};
  std::string rest_; ///< of a line that is not whole yet
};

} // namespace troupe::os
