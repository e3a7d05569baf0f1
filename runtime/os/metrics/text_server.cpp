#include "runtime/os/metrics/text_server.hpp"

#include "runtime/os/call_on.hpp"
#include "runtime/os/metrics/limits.hpp"
#include "runtime/os/net/addresses.hpp"
#include "runtime/os/net/listening.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_static_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include <algorithm>
#include <chrono>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::os {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

/// After the system had no descriptor for a connection.
constexpr auto accept_again_after = 1s;

using pages = std::vector<text_server::page>;

/// Null: there is none of that path. A query behind it counts for nothing.
const text_server::page* page_at(beast::string_view target, const pages& all) {
  const auto path = target.substr(0, target.find('?'));
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& each) { return path == each.path; });
  return found == all.end() ? nullptr : &*found;
}

std::string paths_of(const pages& all) {
  std::string out;
  for (const auto& each : all)
    out += (out.empty() ? "" : ", ") + each.path;
  return out;
}

http::response<http::string_body> answer_to(const http::request<http::empty_body>& asked,
                                            const pages& all) {
  http::response<http::string_body> answer{http::status::ok, asked.version()};
  answer.keep_alive(asked.keep_alive());
  answer.set(http::field::content_type, "text/plain; charset=utf-8");
  const bool reads = asked.method() == http::verb::get || asked.method() == http::verb::head;
  const auto* page = page_at(asked.target(), all);
  if (page == nullptr) {
    answer.result(http::status::not_found);
    answer.body() = "only " + paths_of(all) + (all.size() > 1 ? " are here\n" : " is here\n");
  } else if (!reads) {
    answer.result(http::status::method_not_allowed);
    answer.set(http::field::allow, "GET, HEAD");
    answer.body() = page->path + " can only be read\n";
  } else {
    answer.body() = page->text();
    answer.set(http::field::content_type, page->content_type);
    if (page->is_good && !page->is_good())
      answer.result(http::status::service_unavailable);
  }
  answer.prepare_payload();
  if (asked.method() == http::verb::head)
    answer.body().clear(); // with the length that it would have
  return answer;
}

} // namespace

/// One client, request after request.
class text_server::connection : public std::enable_shared_from_this<connection> {
 public:
  connection(asio::ip::tcp::socket socket, const pages& all)
      : stream_(std::move(socket)), pages_(all) {}

  void start(std::function<void()> ended) {
    ended_ = std::move(ended);
    read(limits::metrics_request_within);
  }

  void close() {
    error_code ignored;
    stream_.socket().close(ignored);
  }

 private:
  void read(duration within) {
    parser_.emplace();
    parser_->header_limit(limits::metrics_request_max);
    parser_->body_limit(0);
    stream_.expires_after(within);
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](const error_code& ec, std::size_t) {
                       ec ? self->end() : self->write();
                     });
  }

  void write() {
    const auto made = std::chrono::steady_clock::now();
    answer_ = answer_to(parser_->get(), pages_);
    const bool whole =
        answer_.result() == http::status::ok && parser_->get().method() == http::verb::get;
    stream_.expires_after(limits::metrics_request_within);
    http::async_write(stream_, answer_,
                      [self = shared_from_this(), whole, made](const error_code& ec, std::size_t) {
                        if (!ec && whole)
                          self->tell_answered(made);
                        if (ec || !self->answer_.keep_alive())
                          return self->end();
                        self->read(limits::metrics_idle_within);
                      });
  }

  void tell_answered(instant made) const {
    const auto* page = page_at(parser_->get().target(), pages_);
    if (page != nullptr && page->answered)
      page->answered(made);
  }

  void end() {
    error_code ignored;
    stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
    close();
    if (const auto told = std::exchange(ended_, nullptr))
      told();
  }

  beast::tcp_stream stream_;
  const pages& pages_; ///< the acceptor's, which outlives the thread
  beast::flat_static_buffer<limits::metrics_request_max> buffer_;
  std::optional<http::request_parser<http::empty_body>> parser_;
  http::response<http::string_body> answer_;
  std::function<void()> ended_;
};

/// Runs on the thread of the server, but for its constructor.
class text_server::acceptor : public std::enable_shared_from_this<acceptor> {
 public:
  acceptor(listening open, pages all) : pages_(std::move(all)) {
    for (auto& each : open.acceptors)
      places_.emplace_back(std::move(each));
  }

  void start() {
    for (auto& each : places_)
      await(each);
  }

  void shut() {
    shut_ = true;
    places_.clear();
    for (const auto& each : std::exchange(connections_, {}))
      each->close();
  }

 private:
  struct place {
    explicit place(tcp_acceptor a) : accepts(std::move(a)), later(accepts.get_executor()) {}
    tcp_acceptor accepts;
    asio::steady_timer later;
  };

  void await(place& at) {
    at.accepts.async_accept([self = shared_from_this(), &at](const error_code& ec, auto socket) {
      if (self->shut_)
        return;
      if (!ec) {
        self->take(asio::ip::tcp::socket(std::move(socket)));
        return self->await(at);
      }
      at.later.expires_after(accept_again_after);
      at.later.async_wait([self, &at](const error_code& cancelled) {
        if (!cancelled && !self->shut_)
          self->await(at);
      });
    });
  }

  /// One too many takes the place of the oldest: clients that only hold connections keep no other
  /// one out.
  void take(asio::ip::tcp::socket accepted) {
    if (connections_.size() >= limits::metrics_connections_max)
      connections_.back()->close();
    connections_.push_front(std::make_shared<connection>(std::move(accepted), pages_));
    const auto which = connections_.begin();
    (*which)->start([self = shared_from_this(), which] {
      if (!self->shut_)
        self->connections_.erase(which);
    });
  }

  pages pages_;
  std::list<place> places_;
  std::list<std::shared_ptr<connection>> connections_;
  bool shut_ = false;
};

result<std::unique_ptr<text_server>> text_server::open(const ports::endpoint& where,
                                                       std::vector<page> pages) {
  const auto addresses = listening_addresses(where, false);
  if (!addresses)
    return tl::make_unexpected(addresses.error());
  auto io = std::make_unique<io_thread>("troupe-metrics");
  auto open = listen_on(io->context(), where, *addresses);
  if (!open)
    return tl::make_unexpected(open.error());
  const auto port = open->port;
  auto accepts = std::make_shared<acceptor>(std::move(*open), std::move(pages));
  boost::asio::post(io->context(), [accepts] { accepts->start(); });
  return std::unique_ptr<text_server>(
      new text_server(std::move(io), std::move(accepts), {where.host, port}));
}

text_server::text_server(std::unique_ptr<io_thread> io, std::shared_ptr<acceptor> accepts,
                         ports::endpoint where)
    : io_(std::move(io)), acceptor_(std::move(accepts)), where_(std::move(where)) {}

text_server::~text_server() {
  call_on(*io_, [this] { acceptor_->shut(); });
}

ports::endpoint text_server::where() const {
  return where_;
}

} // namespace troupe::os
