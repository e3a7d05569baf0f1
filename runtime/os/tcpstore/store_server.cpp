#include "runtime/os/tcpstore/store_server.hpp"

#include "runtime/os/net/addresses.hpp"

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

namespace troupe::os {

namespace {

namespace asio = boost::asio;
namespace ip = asio::ip;
using boost::system::error_code;

/// Connections accepted before others get their turn, and buffers full read from one of them.
constexpr int accepted_at_once = 64;
constexpr int reads_at_once = 4;

ip::address plain(const ip::address& a) {
  return a.is_v6() && a.to_v6().is_v4_mapped() ? ip::make_address_v4(ip::v4_mapped, a.to_v6()) : a;
}

} // namespace

store_server::store_server(asio::io_context& context, const store_host_options& options,
                           ports::store_reach reach, listening open)
    : context_(context), options_(options), reach_(reach), core_(options.bounds),
      buffer_(new char[limits::store_read_buffer]) {
  for (auto& acceptor : open.acceptors)
    listeners_.push_back({std::move(acceptor), asio::steady_timer(context)});
}

void store_server::start() {
  asio::post(context_, [self = shared_from_this()] {
    for (auto& each : self->listeners_)
      self->await(each);
  });
}

void store_server::shut() {
  // Takes effect at once; the descriptors belong to the store's thread.
  for (auto& each : listeners_)
    ::shutdown(each.acceptor.native_handle(), SHUT_RDWR);
  asio::post(context_, [self = shared_from_this()] {
    self->shut_ = true;
    self->listeners_.clear();
    for (const auto& each : std::exchange(self->sessions_, {}))
      if (each)
        each->socket.close();
  });
}

void store_server::note(log::level severity, const char* name, const std::string& text) const {
  options_.log("store", {severity, name, text, {}});
}

// ---- the listener ----

void store_server::await(listener& at) {
  at.acceptor.async_wait(tcp_acceptor::wait_read,
                         [self = shared_from_this(), &at](const error_code& ec) {
                           if (!ec && !self->shut_)
                             self->accept_ready(at);
                         });
}

void store_server::accept_ready(listener& at) {
  for (int n = 0; n < accepted_at_once; ++n) {
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

void store_server::out_of_resources(listener& at, int number) {
  if (!std::exchange(starved_, true))
    note(log::level::warning, "store_accept_paused",
         fmt::format("no worker can connect to the store for now: {}; it is tried again until one "
                     "can (descriptors: ulimit -n)",
                     std::strerror(number)));
  at.pause.expires_after(options_.accept_backoff);
  at.pause.async_wait([self = shared_from_this(), &at](const error_code& ec) {
    if (!ec && !self->shut_)
      self->accept_ready(at);
  });
}

/// A client on this machine comes from the address that it dials.
bool store_server::welcome(const tcp_socket& socket, const ip::tcp::endpoint& from) const {
  if (reach_ == ports::store_reach::network)
    return true;
  error_code ec;
  const auto here = socket.local_endpoint(ec);
  return !ec && (plain(from.address()).is_loopback() || from.address() == here.address());
}

void store_server::admit(int descriptor, const ip::tcp::endpoint& from) {
  tcp_socket socket(context_.get_executor());
  error_code ec;
  socket.assign(from.protocol(), descriptor, ec);
  if (ec) { // the kernel cannot watch one more
    ::close(descriptor);
    return note(log::level::warning, "store_client_refused",
                fmt::format("the store refused {}: {}", to_text(from), ec.message()));
  }
  starved_ = false;
  if (!welcome(socket, from))
    return note(log::level::info, "store_client_refused",
                fmt::format("the store refused {}: it serves a world of one node, this machine "
                            "only",
                            to_text(from)));
  error_code ignored; // a socket that fails here fails again when read
  socket.set_option(ip::tcp::no_delay(true), ignored);
  const auto who = core_.connected();
  if (!who)
    return note(log::level::warning, "store_client_refused",
                fmt::format("the store refused {}: it has {} clients already", to_text(from),
                            core_.clients()));
  if (sessions_.size() <= *who)
    sessions_.resize(*who + 1);
  const auto s = std::make_shared<session>(session{std::move(socket), *who});
  sessions_[*who] = s;
  await_input(s);
}

// ---- one connection ----

void store_server::await_input(const session_ptr& s) {
  if (s->awaits_input || !core_.wants_input(s->who))
    return;
  s->awaits_input = true;
  s->socket.async_wait(tcp_socket::wait_read, [self = shared_from_this(), s](const error_code& ec) {
    s->awaits_input = false;
    if (!ec && s->socket.is_open())
      self->read(s);
  });
}

void store_server::read(const session_ptr& s) {
  for (int n = 0; n < reads_at_once && s->socket.is_open() && core_.wants_input(s->who); ++n) {
    const auto got = ::recv(s->socket.native_handle(), buffer_.get(), limits::store_read_buffer, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
      break;
    if (got <= 0)
      return drop(s);
    core_.received(s->who, {buffer_.get(), static_cast<std::size_t>(got)});
    follow_changes();
    if (static_cast<std::size_t>(got) < limits::store_read_buffer)
      break;
  }
  if (s->socket.is_open())
    await_input(s);
}

void store_server::await_room(const session_ptr& s) {
  s->awaits_room = true;
  s->socket.async_wait(tcp_socket::wait_write,
                       [self = shared_from_this(), s](const error_code& ec) {
                         s->awaits_room = false;
                         if (ec || !s->socket.is_open())
                           return;
                         self->write(s);
                         self->follow_changes();
                       });
}

void store_server::write(const session_ptr& s) {
  const auto all = core_.answers(s->who);
  if (all.empty() || s->awaits_room)
    return;
  const auto put = ::send(s->socket.native_handle(), all.data(), all.size(), MSG_NOSIGNAL);
  if (put < 0 && errno != EAGAIN && errno != EINTR)
    return drop(s);
  const auto taken = put < 0 ? 0 : static_cast<std::size_t>(put);
  const bool left = taken < all.size();
  core_.sent(s->who, taken);
  if (left)
    await_room(s);
}

/// What one client says may be an answer for others, and what is sent may let others go on.
void store_server::follow_changes() {
  for (;;) {
    const auto& changes = core_.take_changes();
    if (changes.answered.empty() && changes.resumed.empty() && changes.closed.empty())
      return;
    for (const auto& c : changes.closed)
      if (const auto s = sessions_[c.who])
        send_away(s, c.why);
    for (const auto who : changes.answered)
      if (const auto s = sessions_[who])
        write(s);
    for (const auto who : changes.resumed)
      if (const auto s = sessions_[who])
        await_input(s);
  }
}

void store_server::send_away(const session_ptr& s, const std::string& why) {
  error_code ec;
  const auto from = s->socket.remote_endpoint(ec);
  // Of a worker the user wants to know; strangers are nothing special.
  const bool worker = core_.speaks(s->who) == tcpstore::dialect::validated;
  note(worker ? log::level::warning : log::level::info, "store_client_dropped",
       fmt::format("the store closed the connection from {}: {}",
                   ec ? std::string("an unknown address") : to_text(from), why));
  drop(s);
}

void store_server::drop(const session_ptr& s) {
  sessions_[s->who] = nullptr;
  core_.disconnected(s->who);
  s->socket.close();
}

} // namespace troupe::os
