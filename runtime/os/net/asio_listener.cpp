#include "runtime/os/net/asio_listener.hpp"

#include "runtime/os/net/addresses.hpp"

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace troupe::os {

namespace {

namespace asio = boost::asio;
namespace ip = asio::ip;
using boost::system::error_code;

/// Connections accepted before others get their turn.
constexpr int accepted_at_once = 64;

} // namespace

accept_loop::accept_loop(asio::io_context& context, const transport_options& options,
                         std::unique_ptr<authenticator::server_side> server_side,
                         ports::transport::acceptor accept)
    : context_(context), options_(options), server_side_(std::move(server_side)),
      accept_(std::move(accept)),
      admission_({options.unproven_max, options.unproven_max, options.unproven_grace,
                  options.link.handshake_within, options.unproven_grace / 4}),
      timer_(context.get_executor()) {}

result<std::shared_ptr<accept_loop>> accept_loop::make(asio::io_context& context,
                                                       const transport_options& options,
                                                       const std::shared_ptr<authenticator>& auth,
                                                       const ports::endpoint& where,
                                                       ports::transport::acceptor accept) {
  auto addresses = listening_addresses(where, auth->loopback_only());
  if (!addresses)
    return tl::make_unexpected(addresses.error());
  if (auth->loopback_only())
    for (const auto& e : *addresses)
      if (auto fine = check_loopback("listening on", where, e.address()); !fine)
        return tl::make_unexpected(fine.error());
  auto open = listen_on(context, where, *addresses);
  if (!open)
    return tl::make_unexpected(open.error());
  std::vector<ip::tcp::endpoint> bound;
  for (const auto& acceptor : open->acceptors)
    bound.push_back(acceptor.local_endpoint());
  auto server_side = auth->open(bound);
  if (!server_side)
    return tl::make_unexpected(server_side.error());
  auto loop =
      std::make_shared<accept_loop>(context, options, std::move(*server_side), std::move(accept));
  loop->port_ = open->port;
  for (auto& acceptor : open->acceptors)
    loop->places_.push_back({std::move(acceptor), io_timer(context.get_executor())});
  return loop;
}

void accept_loop::start() {
  asio::post(context_, [self = shared_from_this()] {
    for (auto& each : self->places_)
      self->await(each);
  });
}

void accept_loop::shut() {
  // Takes effect at once, so that the next listener finds the port free; the descriptors belong to
  // the I/O thread.
  for (auto& each : places_)
    ::shutdown(each.acceptor.native_handle(), SHUT_RDWR);
  asio::post(context_, [self = shared_from_this()] {
    self->shut_ = true;
    self->places_.clear();
    self->timer_.cancel();
    const auto left = std::exchange(self->unproven_, {});
    for (const auto& [which, each] : left)
      if (each.shell)
        each.shell->abort({errc::closed, "no longer listening"});
    self->accept_ = nullptr;
    self->server_side_.reset();
  });
}

void accept_loop::await(place& at) {
  at.acceptor.async_wait(tcp_acceptor::wait_read,
                         [self = shared_from_this(), &at](const error_code& ec) {
                           if (!ec && !self->shut_)
                             self->accept_ready(at);
                         });
}

void accept_loop::accept_ready(place& at) {
  for (int n = 0; n < accepted_at_once; ++n) {
    if (admission_.full(now()))
      return pause(at);
    ip::tcp::endpoint from;
    auto size = static_cast<socklen_t>(from.capacity());
    const int descriptor =
        ::accept4(at.acceptor.native_handle(), from.data(), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    const int number = errno;
    if (descriptor >= 0) {
      from.resize(size);
      admit(descriptor, from);
    } else if (number == EAGAIN) {
      break;
    } else if (lacks_resources(number)) {
      return out_of_resources(at, number);
    }
    // Any other error is about the connection that was to be accepted, and that is gone.
  }
  await(at);
}

void accept_loop::out_of_resources(place& at, int number) {
  if (!std::exchange(starved_, true))
    options_.log("link",
                 {log::level::warning,
                  "accept_paused",
                  fmt::format("no node can connect for now: {}; it is tried again until one can "
                              "(descriptors: ulimit -n)",
                              std::strerror(number)),
                  {}});
  pause(at);
}

/// Without a pause, the connection that is not accepted would keep the thread busy until it is.
void accept_loop::pause(place& at) {
  at.pause.expires_after(options_.accept_backoff);
  at.pause.async_wait([self = shared_from_this(), &at](const error_code& ec) {
    if (!ec && !self->shut_)
      self->accept_ready(at);
  });
}

void accept_loop::admit(int descriptor, const ip::tcp::endpoint& from) {
  auto socket = std::make_unique<tcp_socket>(context_.get_executor());
  error_code ec;
  socket->assign(from.protocol(), descriptor, ec);
  if (ec) { // the kernel cannot watch one more
    ::close(descriptor);
    return note(to_text(from), {errc::overloaded, ec.message()});
  }
  error_code ignored; // a socket that fails here fails again when read
  socket->set_option(ip::tcp::no_delay(true), ignored);
  starved_ = false;
  const auto which = ++last_;
  socket->async_wait(tcp_socket::wait_read,
                     [weak = weak_from_this(), which](const error_code& gone) {
                       const auto self = weak.lock();
                       if (!gone && self && !self->shut_)
                         self->perform(self->admission_.spoke(now(), which));
                     });
  unproven_[which] = {std::move(socket), nullptr, to_text(from)};
  perform(admission_.came(now(), which, network_of(from.address())));
}

void accept_loop::perform(const link::admission_core::effects& todo) {
  for (const auto& each : todo.drop)
    drop(each.which, each.why);
  for (const auto which : todo.begin)
    begin(which);
  wake_when_due();
}

void accept_loop::begin(id which) {
  auto& it = unproven_.at(which);
  auto shell = std::make_shared<link_shell>(
      link::link_core::accepting(options_.timing_now(), now()), link::role::acceptor,
      stream(std::move(*it.socket), server_side_->context()), it.peer, heard_);
  it.socket.reset();
  it.shell = shell;
  // Not owned: we hold the shell, and it holds these.
  const auto weak = weak_from_this();
  link_shell::outcome told;
  told.on_proven = [weak, which](std::shared_ptr<link_shell> proven,
                                 messages::msg<messages::Hello> hello) {
    const auto self = weak.lock();
    if (!self || self->shut_)
      return;
    self->ended(which, true);
    self->accept_({std::make_shared<asio_connection>(std::move(proven)), std::move(hello)});
  };
  told.on_failed = [weak, which](const error& why) {
    const auto self = weak.lock();
    if (!self || self->shut_ || self->unproven_.count(which) == 0)
      return;
    self->note(self->unproven_.at(which).peer, why);
    self->ended(which, false);
  };
  shell->start(std::move(told));
}

void accept_loop::ended(id which, bool proven) {
  unproven_.erase(which);
  perform(admission_.ended(now(), which, proven));
}

/// The core has forgotten it already.
void accept_loop::drop(id which, const error& why) {
  const auto gone = unproven_.extract(which);
  note(gone.mapped().peer, why);
  if (gone.mapped().shell)
    gone.mapped().shell->abort(why);
}

/// No actor hears of refused connections; to find out why a node cannot connect, a person wants to.
void accept_loop::note(const std::string& peer, const error& why) {
  auto text = fmt::format("connection from {}: {}", peer, why.what);
  if (notes_.refused(now(), text))
    options_.log("link", {log::level::info,
                          "connection_refused",
                          std::move(text),
                          {{"peer", peer}, {"reason", why.what}}});
}

void accept_loop::tick() {
  if (const auto counted = notes_.tick(now()))
    options_.log("link", {log::level::info, "connections_refused", *counted, {}});
  perform(admission_.tick(now()));
}

void accept_loop::wake_when_due() {
  const auto of_notes = notes_.next_wakeup();
  auto at = admission_.next_wakeup();
  if (of_notes)
    at = at ? std::min(*at, *of_notes) : of_notes;
  if (!at) {
    timer_.cancel();
    return;
  }
  timer_.expires_at(*at);
  timer_.async_wait([weak = weak_from_this()](const error_code& ec) {
    const auto self = weak.lock();
    if (!ec && self && !self->shut_)
      self->tick();
  });
}

} // namespace troupe::os
