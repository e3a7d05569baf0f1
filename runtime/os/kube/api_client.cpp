#include "runtime/os/kube/api_client.hpp"

#include "runtime/os/contents_of.hpp"
#include "runtime/os/kube/limits.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <utility>

namespace troupe::os {

namespace {

namespace asio = boost::asio;
namespace ssl = asio::ssl;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;

bool is_address(const std::string& host) {
  error_code no;
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

} // namespace

struct api_client::shared {
  asio::io_context& context;
  api_access access;
  ssl::context tls{ssl::context::tls_client};
  std::size_t under_way = 0;
  bool closed = false;

  shared(asio::io_context& c, api_access a) : context(c), access(std::move(a)) {}
};

/// One connection: calls are too few to keep it.
class api_client::one_call : public std::enable_shared_from_this<one_call> {
  /// What follows a step, if it went well.
  template<class... Args>
  auto on(const char* step, void (one_call::*next)(Args...)) {
    return [self = shared_from_this(), step, next](const error_code& ec, const auto&... args) {
      if (ec)
        return self->fail(fmt::format("{}: {}", step, ec.message()));
      if constexpr (sizeof...(Args) == 0)
        (self.get()->*next)();
      else
        (self.get()->*next)(args...);
    };
  }

 public:
  one_call(std::shared_ptr<shared> s, done answered)
      : shared_(std::move(s)), answered_(std::move(answered)), resolver_(shared_->context),
        stream_(shared_->context, shared_->tls) {
    ++shared_->under_way;
  }
  ~one_call() { --shared_->under_way; }

  void start(const kube::api_request& what) {
    const auto& a = shared_->access;
    const auto token = without_space_behind(contents_of(a.token_file));
    if (token.empty() || token.size() > limits::api_token_max)
      return fail(fmt::format("the token in '{}' cannot be read", a.token_file));
    request_ = {http::string_to_verb(what.method), what.target, 11};
    request_.set(http::field::host, ports::to_string(a.server));
    request_.set(http::field::user_agent, "troupe");
    request_.set(http::field::accept, "application/json");
    request_.set(http::field::authorization, "Bearer " + token);
    if (!what.content_type.empty()) {
      request_.set(http::field::content_type, what.content_type);
      request_.body() = what.body;
    }
    request_.keep_alive(false);
    request_.prepare_payload();
    deadline_.expires_after(limits::api_call_within);
    deadline_.async_wait([self = shared_from_this()](const error_code& cancelled) {
      if (!cancelled)
        self->give_up();
    });
    resolver_.async_resolve(a.server.host, std::to_string(a.server.port),
                            on("its name", &one_call::connect));
  }

 private:
  void connect(tcp::resolver::results_type found) {
    beast::get_lowest_layer(stream_).async_connect(found, on("connecting", &one_call::prove));
  }

  void prove() {
    const auto& host = shared_->access.server.host;
    if (!is_address(host))
      ::SSL_set_tlsext_host_name(stream_.native_handle(), host.c_str());
    stream_.set_verify_callback(ssl::host_name_verification(host));
    stream_.async_handshake(ssl::stream_base::client, on("TLS", &one_call::write));
  }

  void write() { http::async_write(stream_, request_, on("writing", &one_call::read)); }

  void read() {
    parser_.header_limit(limits::api_header_max);
    parser_.body_limit(limits::api_answer_max);
    http::async_read(stream_, buffer_, parser_, on("reading", &one_call::end));
  }

  void end() {
    auto& answer = parser_.get();
    kube::api_answer a{answer.result_int(), std::move(answer.body()), {}};
    if (const auto later = answer.find(http::field::retry_after); later != answer.end())
      a.retry_after = seconds_in(std::string(later->value()));
    conclude(a);
  }

  void give_up() {
    fail("it has not answered in time");
    resolver_.cancel();
  }

  void fail(const std::string& why) {
    const auto& server = shared_->access.server;
    conclude({0, fmt::format("the API server at {}: {}", ports::to_string(server), why), {}});
  }

  /// The connection is not said goodbye to: nothing of it is used again.
  void conclude(const kube::api_answer& a) {
    deadline_.cancel();
    beast::get_lowest_layer(stream_).close();
    const auto told = std::exchange(answered_, nullptr);
    if (told && !shared_->closed)
      told(a);
  }

  std::shared_ptr<shared> shared_;
  done answered_;
  tcp::resolver resolver_;
  asio::steady_timer deadline_{shared_->context};
  ssl::stream<beast::tcp_stream> stream_;
  http::request<http::string_body> request_;
  http::response_parser<http::string_body> parser_;
  beast::flat_buffer buffer_{limits::api_answer_max};
};

result<std::unique_ptr<api_client>> api_client::open(io_thread& io, api_access access) {
  auto s = std::make_shared<shared>(io.context(), std::move(access));
  s->tls.set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 |
                     ssl::context::no_tlsv1_1);
  error_code wrong;
  s->tls.load_verify_file(s->access.authority, wrong);
  if (wrong)
    return failure(errc::unavailable, fmt::format("'{}' has no certificate of an authority: {}",
                                                  s->access.authority, wrong.message()));
  s->tls.set_verify_mode(ssl::verify_peer);
  return std::unique_ptr<api_client>(new api_client(std::move(s)));
}

api_client::~api_client() {
  shared_->closed = true;
}

void api_client::call(const kube::api_request& what, done answered) {
  if (shared_->under_way >= limits::api_calls_max) {
    asio::post(shared_->context, [answered = std::move(answered)] {
      answered({0, "too many calls to the API server are under way", {}});
    });
    return;
  }
  std::make_shared<one_call>(shared_, std::move(answered))->start(what);
}

} // namespace troupe::os
