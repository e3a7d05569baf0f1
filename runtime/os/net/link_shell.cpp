#include "runtime/os/net/link_shell.hpp"

#include "runtime/os/net/tls_peer.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/ssl/error.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace troupe::os {

namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// Most links are idle most of the time: their buffer is small until a read fills it.
constexpr std::size_t read_min = 1u << 10;
constexpr std::size_t read_max = 64u << 10;

/// A batch as buffers, without copying: asio copies the sequence it is given, so that is two
/// pointers.
struct buffer_range {
  const asio::const_buffer* first;
  const asio::const_buffer* last;
  const asio::const_buffer* begin() const { return first; }
  const asio::const_buffer* end() const { return last; }
};

} // namespace

link_shell::link_shell(link::link_core core, link::role as, stream connected, std::string peer,
                       std::shared_ptr<instant> heard)
    : core_(std::move(core)), role_(as), peer_(std::move(peer)), heard_(std::move(heard)),
      stream_(std::move(connected)), timer_(stream_.socket().get_executor()),
      read_buffer_(read_min) {}

// ---- The core and its shell ----

/// An event on the I/O thread, and what follows from it.
template<class Event>
void link_shell::step(Event&& event) {
  link::effects todo;
  {
    const std::lock_guard lock(mutex_);
    event(core_);
    todo = core_.react(now());
  }
  act(std::move(todo));
}

/// Lets the I/O thread see what an event has changed. Under mutex_.
void link_shell::kick() {
  if (std::exchange(kicked_, true))
    return;
  asio::post(stream_.socket().get_executor(), [self = shared_from_this()] { self->pump(); });
}

void link_shell::pump() {
  step([this](link::link_core&) { kicked_ = false; });
}

void link_shell::act(link::effects todo) {
  if (todo.proven)
    std::exchange(told_, {}).on_proven(shared_from_this(), std::move(todo.hello));
  for (auto& m : todo.messages)
    events_.on_message(std::move(m));
  if (!todo.write.empty())
    write(std::move(todo.write));
  if (todo.half_close) {
    error_code ignored; // whatever is wrong with the socket, reading tells
    stream_.socket().shutdown(tcp_socket::shutdown_send, ignored);
  }
  if (todo.closed)
    return finish(todo.how, std::move(*todo.closed));
  if (todo.read && !reading_)
    read();
  wake_at(todo.wake_at);
}

void link_shell::finish(ports::link_end how, error why) {
  error_code ignored;
  stream_.socket().close(ignored);
  timer_.cancel();
  ended_ = {how, why.what};
  if (told_.on_failed)
    std::exchange(told_, {}).on_failed(std::move(why));
  // Owners and links hold each other until here.
  if (opened_)
    std::exchange(events_, {}).on_closed(*ended_);
}

// ---- What owners call ----

void link_shell::open(ports::connection_events events) {
  asio::post(stream_.socket().get_executor(),
             [self = shared_from_this(), events = std::move(events)]() mutable {
               self->opened_ = true;
               if (self->ended_)
                 return events.on_closed(*self->ended_);
               self->events_ = std::move(events);
               self->step([](link::link_core& core) { core.opened(now()); });
             });
}

result<void> link_shell::send(messages::any_msg m) {
  const std::lock_guard lock(mutex_);
  auto sent = core_.send(now(), std::move(m));
  kick();
  return sent;
}

void link_shell::taken() {
  const std::lock_guard lock(mutex_);
  if (core_.taken(now()))
    kick();
}

void link_shell::close(error why) {
  const std::lock_guard lock(mutex_);
  core_.close(now(), std::move(why));
  kick();
}

void link_shell::abort(error why) {
  step([&why](link::link_core& core) { core.abort(now(), std::move(why)); });
}

// ---- Socket ----

void link_shell::start(outcome told, std::string dialled_host) {
  told_ = std::move(told);
  if (stream_.to_be_encrypted()) {
    encrypt(dialled_host);
    pump();
  } else {
    step([](link::link_core& core) { core.ready(now()); });
  }
}

void link_shell::encrypt(const std::string& dialled_host) {
  const auto as = role_ == link::role::dialler ? asio::ssl::stream_base::client
                                               : asio::ssl::stream_base::server;
  stream_.async_handshake(as, [self = shared_from_this(), dialled_host](const error_code& ec) {
    if (self->ended_)
      return;
    result<peer_identity> who;
    if (ec)
      who = tl::make_unexpected(self->in_words(ec, " during the TLS handshake"));
    else
      who = judge_peer(self->stream_.session(), dialled_host);
    // After a failure there is still the alert to be read by the peer.
    if (ec)
      self->stream_.drop_encryption();
    self->step([&](link::link_core& core) {
      core.ready(now(), who ? std::move(*who) : peer_identity{});
      if (!who)
        core.close(now(), std::move(who.error()));
    });
  });
}

void link_shell::read() {
  if (last_read_ == read_buffer_.size())
    read_buffer_ = std::vector<kj::byte>(std::min(read_max, 4 * read_buffer_.size()));
  else if (last_read_ < read_min && read_buffer_.size() > read_min)
    read_buffer_ = std::vector<kj::byte>(read_min);
  reading_ = true;
  stream_.async_read_some(asio::buffer(read_buffer_),
                          [self = shared_from_this()](const error_code& ec, std::size_t n) {
                            self->reading_ = false;
                            if (!self->ended_)
                              self->did_read(ec, n);
                          });
}

void link_shell::did_read(const error_code& ec, std::size_t n) {
  last_read_ = n;
  if (n > 0 && opened_ && heard_)
    *heard_ = now();
  step([&](link::link_core& core) {
    if (n > 0)
      core.received(now(), link::bytes(read_buffer_.data(), n));
    if (ec)
      core.ended(now(), in_words(ec, ""));
  });
}

void link_shell::write(std::vector<link::out_frame> batch) {
  writing_ = std::move(batch);
  if (stream_.session()) {
    encrypted_ = {};
    return write_encrypted();
  }
  gathered_.clear();
  for (const auto& f : writing_) {
    gathered_.emplace_back(f.header.data(), f.header.size());
    if (const auto body = f.body(); body.size() > 0)
      gathered_.emplace_back(body.begin(), body.size());
  }
  stream_.async_write(
      buffer_range{gathered_.data(), gathered_.data() + gathered_.size()},
      [self = shared_from_this()](const error_code& ec, std::size_t) { self->did_write(ec); });
}

/// Encryption copies anyway, and makes a record of every buffer it is given. So small frames go
/// together, and of a large one each link copies no more at a time than a record holds: ten
/// thousand links that all send the same world share it.
void link_shell::write_encrypted() {
  flat_.clear();
  encrypted_ = link::append_some(flat_, writing_, encrypted_, limits::encrypted_at_once);
  stream_.async_write(asio::buffer(flat_),
                      [self = shared_from_this()](const error_code& ec, std::size_t) {
                        if (!ec && !self->ended_ && !self->encrypted_.at_end(self->writing_))
                          self->write_encrypted();
                        else
                          self->did_write(ec);
                      });
}

void link_shell::did_write(const error_code& ec) {
  writing_.clear();
  flat_ = {};
  if (ended_)
    return;
  step([&](link::link_core& core) {
    if (ec)
      core.write_failed(now(), in_words(ec, ""));
    else
      core.written(now());
  });
}

/// Sets the timer only if it is set for later: deadlines mostly move away as life goes on, and
/// waking early costs less than setting it for every message.
void link_shell::wake_at(instant when) {
  if (when >= timer_set_for_)
    return;
  timer_set_for_ = when;
  timer_.expires_at(when);
  timer_.async_wait([self = shared_from_this()](const error_code& ec) {
    if (ec || self->ended_)
      return;
    self->timer_set_for_ = instant::max();
    const auto anybody = self->heard_ ? *self->heard_ : instant::max();
    self->step([anybody](link::link_core& core) { core.tick(now(), anybody); });
  });
}

/// `invalid` and `refused` are what trying again would not change.
error link_shell::in_words(const error_code& ec, const char* when) {
  if (ec.category() == asio::error::get_ssl_category())
    return stream_.session() ? tls_failure(stream_.session(), ec)
                             : error{errc::refused, ec.message()};
  if (ec == asio::error::eof || ec == asio::ssl::error::stream_truncated)
    return {errc::closed, fmt::format("the peer closed the connection{}", when)};
  return {errc::closed, fmt::format("the connection broke{}: {}", when, ec.message())};
}

} // namespace troupe::os
