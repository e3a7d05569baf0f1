#include "runtime/os/metrics/text_server.hpp"

#include "runtime/os/metrics/limits.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <vector>

using namespace troupe;
namespace asio = boost::asio;

namespace {

std::unique_ptr<os::text_server> opened(std::atomic<int>& asked) {
  auto server =
      os::text_server::open({"127.0.0.1", 0}, {{"/metrics", "text/plain; version=0.0.4", [&asked] {
                                                  ++asked;
                                                  return std::string("one 1\n");
                                                }}});
  REQUIRE(server);
  return std::move(*server);
}

/// A client that sends what it likes.
class client {
 public:
  explicit client(const os::text_server& server) : socket_(context_) {
    socket_.connect({asio::ip::make_address("127.0.0.1"), server.where().port});
  }

  void send(const std::string& text) { asio::write(socket_, asio::buffer(text)); }
  /// Head and body of one answer; "" if the connection was closed before it.
  std::string answer() {
    boost::system::error_code ec;
    const auto head = asio::read_until(socket_, asio::dynamic_buffer(got_), "\r\n\r\n", ec);
    if (ec)
      return {};
    const std::string field = "Content-Length: ";
    const auto at = got_.find(field);
    const auto length = at < head ? std::stoul(got_.substr(at + field.size())) : 0;
    const auto whole = head + (has_body_ ? length : 0);
    if (got_.size() < whole)
      asio::read(socket_, asio::dynamic_buffer(got_), asio::transfer_exactly(whole - got_.size()));
    auto one = got_.substr(0, whole);
    got_.erase(0, whole);
    return one;
  }
  void expect_no_body() { has_body_ = false; }
  bool is_closed() {
    char c = 0;
    boost::system::error_code ec;
    asio::read(socket_, asio::buffer(&c, 1), ec);
    return bool(ec);
  }

 private:
  asio::io_context context_;
  asio::ip::tcp::socket socket_;
  std::string got_;
  bool has_body_ = true;
};

bool starts(const std::string& text, const std::string& with) {
  return text.rfind(with, 0) == 0;
}

} // namespace

TEST_CASE("the text, as often as a connection asks") {
  std::atomic<int> asked{0};
  const auto server = opened(asked);
  client c(*server);
  for (int n = 1; n <= 3; ++n) {
    c.send("GET /metrics?name=x HTTP/1.1\r\nHost: here\r\n\r\n");
    const auto answer = c.answer();
    CHECK(starts(answer, "HTTP/1.1 200 OK\r\n"));
    CHECK(answer.find("Content-Type: text/plain; version=0.0.4\r\n") != std::string::npos);
    CHECK(answer.substr(answer.find("\r\n\r\n") + 4) == "one 1\n");
    CHECK(asked == n);
  }
  c.send("GET /metrics HTTP/1.0\r\n\r\n");
  CHECK(starts(c.answer(), "HTTP/1.0 200 OK\r\n"));
  CHECK(c.is_closed());
}

TEST_CASE("its length only") {
  std::atomic<int> asked{0};
  const auto server = opened(asked);
  client c(*server);
  c.expect_no_body();
  c.send("HEAD /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
  CHECK(c.answer().find("Content-Length: 6\r\n") != std::string::npos);
}

TEST_CASE("what is not there, and what is not done") {
  std::atomic<int> asked{0};
  const auto server = opened(asked);
  client c(*server);
  c.send("GET /metricsx HTTP/1.1\r\nHost: here\r\n\r\n");
  CHECK(starts(c.answer(), "HTTP/1.1 404 Not Found\r\n"));
  c.send("POST /metrics HTTP/1.1\r\nHost: here\r\nContent-Length: 0\r\n\r\n");
  CHECK(starts(c.answer(), "HTTP/1.1 405 Method Not Allowed\r\n"));
  CHECK(asked == 0);
}

TEST_CASE("what is no request, or too large a one, ends its connection alone") {
  std::atomic<int> asked{0};
  const auto server = opened(asked);
  for (const auto& wrong : std::vector<std::string>{
           "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "GET\r\n\r\n",
           "POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nabcde",
           "GET /metrics HTTP/1.1\r\nX: " + std::string(2 * limits::metrics_request_max, 'x')}) {
    client c(*server);
    try {
      c.send(wrong);
    } catch (const boost::system::system_error&) {
      // It was closed before all was sent.
    }
    CHECK(c.answer().empty());
  }
  CHECK(asked == 0);
  client good(*server);
  good.send("GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
  CHECK(starts(good.answer(), "HTTP/1.1 200 OK\r\n"));
}

TEST_CASE("clients that only hold connections keep no other one out") {
  std::atomic<int> asked{0};
  const auto server = opened(asked);
  std::vector<std::unique_ptr<client>> held;
  for (std::size_t n = 0; n < 2 * limits::metrics_connections_max; ++n)
    held.push_back(std::make_unique<client>(*server));
  client good(*server);
  good.send("GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
  CHECK(starts(good.answer(), "HTTP/1.1 200 OK\r\n"));
  CHECK(held.front()->is_closed());
}

TEST_CASE("a port that is taken") {
  std::atomic<int> asked{0};
  const auto server = opened(asked);
  const auto second = os::text_server::open(
      server->where(), {{"/metrics", "text/plain", [] { return std::string(); }}});
  REQUIRE(!second);
  CHECK(second.error().what.find(std::to_string(server->where().port)) != std::string::npos);
}

TEST_CASE("several pages, of which one says that it is not well") {
  std::atomic<bool> well{true};
  std::atomic<int> read{0};
  const auto text = [] { return std::string("words\n"); };
  auto server = os::text_server::open(
      {"127.0.0.1", 0},
      {{"/metrics", "text/plain", text, [&read](instant) { ++read; }},
       {"/healthz", "text/plain", text, nullptr, [&well] { return well.load(); }}});
  REQUIRE(server);
  client c(**server);
  const auto get = [&c](const std::string& path) {
    c.send("GET " + path + " HTTP/1.1\r\nHost: here\r\n\r\n");
    return c.answer();
  };
  CHECK(starts(get("/metrics"), "HTTP/1.1 200 OK\r\n"));
  CHECK(starts(get("/healthz?verbose"), "HTTP/1.1 200 OK\r\n"));
  well = false;
  const auto bad = get("/healthz");
  CHECK(starts(bad, "HTTP/1.1 503 Service Unavailable\r\n"));
  CHECK(bad.find("\r\n\r\nwords\n") != std::string::npos);
  CHECK(get("/").find("only /metrics, /healthz are here\n") != std::string::npos);
  CHECK(read == 1);
}
