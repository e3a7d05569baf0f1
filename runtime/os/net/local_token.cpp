#include "runtime/os/net/local_token.hpp"

#include "runtime/base/limits.hpp"
#include "runtime/os/net/addresses.hpp"
#include "runtime/os/net/link_shell.hpp"
#include "runtime/os/net/token_tls.hpp"

#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <list>
#include <optional>
#include <utility>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace troupe::os {

namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using endpoint = asio::ip::tcp::endpoint;
using descriptor = asio::posix::basic_stream_descriptor<io_executor>;

/// Asked for before others get their turn.
constexpr int asked_at_once = 64;

struct socket_name {
  sockaddr_un address{};
  socklen_t size = 0;
};

/// Abstract, so it belongs to a network namespace as the port does, and to no directory.
socket_name name_of(const endpoint& e) {
  const auto text = "troupe/" + to_text(e);
  socket_name name;
  name.address.sun_family = AF_UNIX;
  const auto size = std::min(text.size(), sizeof name.address.sun_path - 1);
  std::memcpy(name.address.sun_path + 1, text.data(), size);
  name.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  return name;
}

/// One message is one token: there are no halves.
int make_unix_socket() {
  return ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/// The user at the other end, as it was when that end was made.
std::optional<uid_t> user_behind(int socket) {
  ucred who{};
  socklen_t size = sizeof who;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
    return std::nullopt;
  return who.uid;
}

/// Gives the token to each process of the same user that asks. Waits for no peer: what has been
/// accepted is answered and closed at once.
class handout : public std::enable_shared_from_this<handout> {
 public:
  handout(asio::io_context& context, int listening, std::string secret, log::sink log)
      : socket_(context.get_executor(), listening), pause_(context.get_executor()),
        secret_(std::move(secret)), log_(std::move(log)) {}

  static result<std::shared_ptr<handout>> make(asio::io_context& context, const endpoint& for_port,
                                               const std::string& secret, const log::sink& log) {
    const auto name = name_of(for_port);
    const int s = make_unix_socket();
    if (s >= 0 && ::bind(s, reinterpret_cast<const sockaddr*>(&name.address), name.size) == 0 &&
        ::listen(s, SOMAXCONN) == 0)
      return std::make_shared<handout>(context, s, secret, log);
    const int why = errno;
    if (s >= 0)
      ::close(s);
    return failure(errc::refused,
                   fmt::format("cannot listen on {}: the socket that hands out its token, @{}: {}; "
                               "with --token-file none is needed",
                               to_text(for_port), name.address.sun_path + 1, std::strerror(why)));
  }

  void await() {
    socket_.async_wait(descriptor::wait_read, [self = shared_from_this()](const error_code& ec) {
      if (!ec)
        self->answer_all();
    });
  }

  /// Its name is free when this returns.
  void shut() {
    error_code ignored;
    socket_.close(ignored);
    pause_.cancel();
  }

 private:
  void answer_all() {
    for (int n = 0; n < asked_at_once; ++n) {
      const int asking = ::accept4(socket_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC);
      if (asking < 0)
        return errno == EAGAIN || errno == ECONNABORTED ? await() : later();
      answer(asking);
      ::close(asking);
    }
    asio::post(socket_.get_executor(), [self = shared_from_this()] { self->await(); });
  }

  void answer(int asking) {
    const auto user = user_behind(asking);
    if (user == ::geteuid()) {
      // A new socket has room for it, and a peer that hangs up meanwhile does not want it.
      (void)::send(asking, secret_.data(), secret_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      return;
    }
    log_("link", {log::level::info,
                  "token_refused",
                  fmt::format("user {} has asked for this job's token and does not get it",
                              user ? std::to_string(*user) : "unknown"),
                  {}});
  }

  /// Called when there are no descriptors left; the peers that wait are answered after a pause.
  void later() {
    pause_.expires_after(limits::accept_backoff);
    pause_.async_wait([self = shared_from_this()](const error_code& ec) {
      if (!ec)
        self->answer_all();
    });
  }

  descriptor socket_;
  io_timer pause_;
  const std::string secret_;
  const log::sink log_;
};

class local_server_side final : public authenticator::server_side {
 public:
  explicit local_server_side(const job_token& token) : context_(token_tls(token)) {}
  ~local_server_side() override {
    for (const auto& each : handouts)
      each->shut();
  }
  tls_context context() override { return context_; }

  std::vector<std::shared_ptr<handout>> handouts;

 private:
  const tls_context context_;
};

/// Asks for the token of one address.
class question : public std::enable_shared_from_this<question> {
 public:
  question(asio::io_context& context, int socket, endpoint about, authenticator::found done)
      : about_(std::move(about)), done_(std::move(done)), socket_(context.get_executor(), socket),
        patience_(context.get_executor()) {}

  void ask(instant deadline) {
    const auto name = name_of(about_);
    // Connecting Unix sockets never takes time: it is done, or it is refused.
    if (::connect(socket_.native_handle(), reinterpret_cast<const sockaddr*>(&name.address),
                  name.size) != 0)
      return fail(errno == ECONNREFUSED
                      ? std::string("what listens there gives no token to processes of this "
                                    "machine: either it is no master, or it was started with "
                                    "a job token or certificates, and this end needs the same")
                      : fmt::format("its token cannot be asked for: {}", std::strerror(errno)));
    const auto user = user_behind(socket_.native_handle());
    if (user != ::geteuid())
      return fail(fmt::format("it belongs to user {}, and we are user {}",
                              user ? std::to_string(*user) : "unknown", ::geteuid()));
    socket_.async_wait(descriptor::wait_read, [self = shared_from_this()](const error_code& ec) {
      if (self->done_)
        self->take(ec);
    });
    patience_.expires_at(deadline);
    patience_.async_wait([self = shared_from_this()](const error_code& ec) {
      if (!ec && self->done_)
        self->fail("its token did not come in time");
    });
  }

 private:
  void take(const error_code& ec) {
    std::string text(limits::token_max + 1, '\0');
    const auto n =
        ec ? -1 : ::recv(socket_.native_handle(), text.data(), text.size(), MSG_DONTWAIT);
    if (n <= 0)
      return fail("it does not give us its token");
    text.resize(static_cast<std::size_t>(n));
    const auto token = job_token::parse(text);
    if (!token)
      return fail("what it gave us is no token");
    answer(token_tls(*token));
  }

  void fail(const std::string& why) { answer(failure(errc::unavailable, why)); }

  void answer(result<tls_context> with) {
    error_code ignored;
    socket_.close(ignored);
    patience_.cancel();
    std::exchange(done_, nullptr)(std::move(with));
  }

  const endpoint about_;
  authenticator::found done_; ///< empty once answered
  descriptor socket_;
  io_timer patience_;
};

class local_authenticator final : public authenticator {
 public:
  local_authenticator(asio::io_context& context, log::sink log)
      : context_(context), log_(std::move(log)) {}

  bool loopback_only() const override { return true; }

  result<std::unique_ptr<server_side>> open(const std::vector<endpoint>& bound) override {
    const auto token = job_token::fresh();
    auto opened = std::make_unique<local_server_side>(token);
    for (const auto& each : bound) {
      auto made = handout::make(context_, each, token.secret(), log_);
      if (!made)
        return tl::make_unexpected(made.error());
      opened->handouts.push_back(*made);
    }
    for (const auto& each : opened->handouts)
      asio::post(context_, [each] { each->await(); });
    return opened;
  }

  void dial(const endpoint& address, instant deadline, found done) override {
    const int socket = make_unix_socket();
    if (socket < 0)
      return done(failure(errc::unavailable, std::strerror(errno)));
    std::make_shared<question>(context_, socket, address, std::move(done))->ask(deadline);
  }

 private:
  asio::io_context& context_;
  const log::sink log_;
};

} // namespace

std::shared_ptr<authenticator> make_local_authenticator(asio::io_context& context, log::sink log) {
  return std::make_shared<local_authenticator>(context, std::move(log));
}

} // namespace troupe::os
