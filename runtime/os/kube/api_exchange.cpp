#include "runtime/os/kube/api_exchange.hpp"

#include "runtime/os/contents_of.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/beast/ssl.hpp>
#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace troupe::os {

namespace {

namespace asio = boost::asio;
namespace ssl = asio::ssl;
namespace beast = boost::beast;
namespace http = beast::http;

bool is_address(const std::string& host) {
  boost::system::error_code no;
  asio::ip::make_address(host, no);
  return !no;
}

/// The header's other form, a date, is not used by API servers.
std::optional<duration> seconds_in(const std::string& text) {
  unsigned seconds = 0;
  const auto* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, seconds);
  if (read.ec != std::errc() || read.ptr != end)
    return std::nullopt;
  return std::chrono::seconds(seconds);
}

std::string without_space_behind(std::string text) {
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  return text;
}

/// A server whose machine has vanished says nothing, and a watch waits for nothing else: the kernel
/// asks, and ends the connection. What cannot be set is done without.
void notice_the_dead(int socket) {
  const int on = 1, idle = 15, between = 5, times = 3, unacknowledged_ms = 30'000;
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms, sizeof unacknowledged_ms);
}

} // namespace

api_exchange::api_exchange(std::shared_ptr<api_shared> s, line told, done ended)
    : shared_(std::move(s)), told_(std::move(told)), ended_(std::move(ended)),
      resolver_(shared_->context), deadline_(shared_->context),
      stream_(shared_->context, shared_->tls) {
  ++shared_->under_way;
}

api_exchange::~api_exchange() {
  --shared_->under_way;
}

void api_exchange::start(const kube::api_request& what) {
  const auto& a = shared_->access;
  const auto token =
      a.token_file.empty() ? a.token : without_space_behind(contents_of(a.token_file));
  if ((token.empty() && !a.token_file.empty()) || token.size() > limits::api_token_max)
    return fail(fmt::format("the token in '{}' cannot be read", a.token_file));
  request_ = {http::string_to_verb(what.method), a.path + what.target, 11};
  request_.set(http::field::host, ports::to_string(a.server));
  request_.set(http::field::user_agent, "troupe");
  request_.set(http::field::accept, "application/json");
  if (!token.empty())
    request_.set(http::field::authorization, "Bearer " + token);
  if (!what.content_type.empty()) {
    request_.set(http::field::content_type, what.content_type);
    request_.body() = what.body;
  }
  request_.keep_alive(false);
  request_.prepare_payload();
  parser_.header_limit(limits::api_header_max);
  parser_.body_limit(limits::api_answer_max);
  within(limits::api_call_within);
  resolver_.async_resolve(a.server.host, std::to_string(a.server.port),
                          on("its name", &api_exchange::connect));
}

void api_exchange::within(duration limit) {
  deadline_.expires_after(limit);
  deadline_.async_wait([self = shared_from_this()](const error_code& cancelled) {
    if (!cancelled)
      self->give_up();
  });
}

void api_exchange::connect(tcp::resolver::results_type found) {
  beast::get_lowest_layer(stream_).async_connect(found, on("connecting", &api_exchange::prove));
}

void api_exchange::prove() {
  // A request is written in pieces: else each waits for the acknowledgement of the one before it.
  error_code no;
  beast::get_lowest_layer(stream_).socket().set_option(tcp::no_delay(true), no);
  notice_the_dead(beast::get_lowest_layer(stream_).socket().native_handle());
  const auto& a = shared_->access;
  const auto& host = a.tls_name.empty() ? a.server.host : a.tls_name;
  if (!is_address(host))
    ::SSL_set_tlsext_host_name(stream_.native_handle(), host.c_str());
  stream_.set_verify_callback(ssl::host_name_verification(host));
  stream_.async_handshake(ssl::stream_base::client, on("TLS", &api_exchange::write));
}

void api_exchange::write() {
  http::async_write(stream_, request_, on("writing", &api_exchange::read));
}

void api_exchange::read() {
  if (!told_)
    return http::async_read(stream_, buffer_, parser_, on("reading", &api_exchange::end));
  parser_.eager(true);
  http::async_read_header(stream_, buffer_, parser_, on("reading", &api_exchange::take_head));
}

void api_exchange::take_head() {
  if (parser_.get().result() != http::status::ok)
    return http::async_read(stream_, buffer_, parser_, on("reading", &api_exchange::end));
  // It lasts as long as the request says; its caller knows how long that is.
  deadline_.cancel();
  parser_.body_limit(boost::none);
  read_lines();
}

void api_exchange::read_lines() {
  if (parser_.is_done())
    return conclude({200, {}, {}});
  http::async_read_some(stream_, buffer_, parser_,
                        [self = shared_from_this()](const error_code& ec, std::size_t) {
                          if (self->ended_)
                            self->take_lines(ec);
                        });
}

void api_exchange::take_lines(const error_code& ec) {
  rest_ += std::exchange(parser_.get().body(), {});
  std::size_t from = 0;
  for (auto end = rest_.find('\n'); end != std::string::npos && ended_;
       end = rest_.find('\n', from)) {
    told_(rest_.substr(from, end - from));
    from = end + 1;
  }
  rest_.erase(0, from);
  if (!ended_)
    return;
  if (rest_.size() > limits::api_answer_max)
    return fail("a line of a watch is too long");
  if (!ec)
    return read_lines();
  // Servers close a watch's connection as they like.
  if (ec == http::error::end_of_stream || ec == http::error::partial_message ||
      ec == asio::error::eof || ec == ssl::error::stream_truncated)
    return conclude({200, {}, {}});
  fail("watching: " + ec.message());
}

void api_exchange::end() {
  auto& answer = parser_.get();
  kube::api_answer a{answer.result_int(), std::move(answer.body()), {}};
  if (const auto later = answer.find(http::field::retry_after); later != answer.end())
    a.retry_after = seconds_in(std::string(later->value()));
  conclude(a);
}

void api_exchange::give_up() {
  fail("it has not answered in time");
  resolver_.cancel();
}

void api_exchange::forget() {
  ended_ = nullptr;
  conclude({});
}

void api_exchange::fail(const std::string& why, bool is_too_large) {
  const auto& server = shared_->access.server;
  conclude({0,
            fmt::format("the API server at {}: {}", ports::to_string(server), why),
            {},
            is_too_large});
}

/// The connection is not said goodbye to: nothing of it is used again.
void api_exchange::conclude(const kube::api_answer& a) {
  deadline_.cancel();
  beast::get_lowest_layer(stream_).close();
  const auto told = std::exchange(ended_, nullptr);
  if (told && !shared_->closed)
    told(a);
}

} // namespace troupe::os
