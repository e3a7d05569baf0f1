#include "runtime/os/net/asio_dial.hpp"

#include "runtime/link/hello.hpp"
#include "runtime/os/net/addresses.hpp"
#include "runtime/os/net/link_shell.hpp"

#include <boost/asio/ip/basic_resolver.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include <unistd.h>

namespace troupe::os {

namespace {

namespace asio = boost::asio;
namespace ip = asio::ip;
using boost::system::error_code;

/// Lives from start() until it has answered; on the I/O thread.
class dialling : public std::enable_shared_from_this<dialling> {
 public:
  dialling(asio::io_context& context, const link::options& options,
           std::shared_ptr<authenticator> auth, std::vector<ip::address> own, ports::endpoint where,
           messages::msg<messages::Hello> hello, ports::transport::dialled done)
      : options_(options), authenticator_(std::move(auth)), own_(std::move(own)),
        where_(std::move(where)), hello_(std::move(hello)), done_(std::move(done)),
        resolver_(context.get_executor()), socket_(context.get_executor()),
        patience_(context.get_executor()) {}

  void start() {
    deadline_ = now() + options_.dial_within;
    if (const auto address = numeric(where_.host)) {
      // An interface may come back.
      if (const auto wrong = zone_validation_error(where_.host, *address))
        return fail(errc::unavailable, *wrong);
      addresses_ = {ip::tcp::endpoint(*address, where_.port)};
      return try_next("");
    }
    resolve();
  }

 private:
  using tcp_resolver = ip::basic_resolver<ip::tcp, io_executor>;

  void resolve() {
    wait_until(deadline_, [this] { fail(errc::unavailable, "its name was not resolved in time"); });
    resolver_.async_resolve(
        where_.host, std::to_string(where_.port), tcp_resolver::numeric_service,
        [self = shared_from_this()](const error_code& ec, const tcp_resolver::results_type& found) {
          if (!self->done_)
            return;
          if (ec)
            return self->fail(errc::unavailable, ec.message());
          for (const auto& each : found)
            self->addresses_.push_back(each.endpoint());
          self->try_next("");
        });
  }

  /// Tries the next address; `so_far` is what was wrong with the last one.
  void try_next(const std::string& so_far) {
    if (next_ == addresses_.size() || now() >= deadline_)
      return fail(nobody_listens_ ? errc::closed : errc::unavailable, so_far);
    const auto address = addresses_[next_++];
    if (authenticator_->loopback_only())
      if (auto fine = check_loopback("dialling", where_, address.address()); !fine)
        return answer(tl::make_unexpected(fine.error()));
    const int descriptor = make_socket(address);
    if (descriptor < 0)
      return try_next(std::strerror(errno));
    socket_ = tcp_socket(resolver_.get_executor());
    error_code unwatched;
    socket_.assign(address.protocol(), descriptor, unwatched);
    if (unwatched) {
      ::close(descriptor);
      return try_next(unwatched.message());
    }
    if (const auto from = source_for(address.address(), own_))
      socket_.bind({*from, 0}, unwatched);
    if (unwatched)
      return try_next("its own address cannot be used: " + unwatched.message());
    const auto left = deadline_ - now();
    const auto share = left / static_cast<int>(addresses_.size() - next_ + 1);
    // Closing ends the attempt below with an error.
    wait_until(now() + share, [this] { socket_.close(); });
    socket_.async_connect(address, [self = shared_from_this(), address](const error_code& ec) {
      if (!self->done_)
        return;
      self->nobody_listens_ = ec == asio::error::connection_refused;
      if (ec == asio::error::operation_aborted)
        return self->try_next("no answer in time");
      if (ec)
        return self->try_next(ec.message());
      self->connected(address);
    });
  }

  void connected(const ip::tcp::endpoint& address) {
    patience_.cancel();
    error_code ignored; // a socket that fails here fails again when read
    socket_.set_option(ip::tcp::no_delay(true), ignored);
    authenticator_->dial(address, deadline_,
                         [self = shared_from_this(), address](result<tls_context> with) {
                           if (!with)
                             return self->fail(with.error().code, with.error().what);
                           self->greet(address, std::move(*with));
                         });
  }

  void greet(const ip::tcp::endpoint& address, tls_context with) {
    error_code broken;
    const auto local = socket_.local_endpoint(broken);
    if (broken)
      return fail(errc::unavailable, broken.message());
    hello_ = link::with_address(hello_, address_for_others(local.address(), where_.host));
    auto shell = std::make_shared<link_shell>(
        link::link_core::dialling(options_, now(), deadline_, hello_), link::role::dialler,
        stream(std::move(socket_), std::move(with)), to_text(address));
    link_shell::outcome told;
    told.on_proven = [self = shared_from_this()](std::shared_ptr<link_shell> proven, const auto&) {
      self->answer(std::make_shared<asio_connection>(std::move(proven)));
    };
    told.on_failed = [self = shared_from_this()](const error& why) { self->not_linked(why); };
    shell->start(std::move(told), where_.host);
  }

  /// Connected, but it came to no link.
  void not_linked(const error& why) {
    const bool for_good = why.code == errc::refused || why.code == errc::invalid;
    fail(for_good ? errc::refused : errc::closed, why.what);
  }

  template<class Then>
  void wait_until(instant when, Then then) {
    patience_.expires_at(when);
    patience_.async_wait([self = shared_from_this(), then = std::move(then)](const error_code& ec) {
      if (!ec && self->done_)
        then();
    });
  }

  void fail(errc code, const std::string& why) {
    answer(failure(code, fmt::format("cannot connect to {}: {}", to_string(where_), why)));
  }

  void answer(result<ports::connection_ptr> with) {
    patience_.cancel();
    resolver_.cancel();
    std::exchange(done_, nullptr)(std::move(with));
  }

  const link::options options_;
  const std::shared_ptr<authenticator> authenticator_;
  const std::vector<ip::address> own_;
  const ports::endpoint where_;
  messages::msg<messages::Hello> hello_;
  ports::transport::dialled done_; ///< empty once answered
  instant deadline_;
  tcp_resolver resolver_;
  std::vector<ip::tcp::endpoint> addresses_;
  std::size_t next_ = 0;
  bool nobody_listens_ = false; ///< at the last of them, which was reached
  tcp_socket socket_;
  io_timer patience_;
};

} // namespace

void start_dialling(asio::io_context& context, const link::options& options,
                    std::shared_ptr<authenticator> auth, std::vector<ip::address> own,
                    const ports::endpoint& where, messages::msg<messages::Hello> hello,
                    ports::transport::dialled done) {
  auto attempt = std::make_shared<dialling>(context, options, std::move(auth), std::move(own),
                                            where, std::move(hello), std::move(done));
  asio::post(context, [attempt = std::move(attempt)] { attempt->start(); });
}

} // namespace troupe::os
