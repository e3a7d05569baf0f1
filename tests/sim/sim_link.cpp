#include "tests/sim/sim_link.hpp"

#include "messages/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::sim {

namespace {

/// What a kernel takes off a sender's hands before the reader has read it.
constexpr std::size_t kernel_buffers = 256u << 10;
constexpr std::size_t read_at_once = 64u << 10;
/// From an event on another thread to the I/O thread's turn.
constexpr auto io_latency = 5us;

} // namespace

sim_link::sim_link(place at, link::link_core core, wire_ptr out, wire_ptr in)
    : at_(std::move(at)), core_(std::move(core)), out_(std::move(out)), in_(std::move(in)) {}

std::string sim_link::label() const {
  return fmt::format("link   {} with {}", at_.connection, at_.there);
}

void sim_link::start(outcome told) {
  told_ = std::move(told);
  const std::weak_ptr<sim_link> weak = weak_from_this();
  const auto in_context = [weak](void (sim_link::*what)()) {
    return [weak, what] {
      if (const auto self = weak.lock())
        self->at_.here->call([self, what] { (self.get()->*what)(); });
    };
  };
  in_->on_arrival = in_context(&sim_link::read);
  out_->on_room = [weak, here = at_.here] {
    if (const auto self = weak.lock(); self && self->writing_)
      here->call_in(io_latency, [self] { self->wrote(); });
  };
  step([this](link::link_core& core) { core.ready(at_.here->now()); });
  read();
}

/// An event, and what follows from it.
template<class Event>
void sim_link::step(Event&& event) {
  event(core_);
  act(core_.react(at_.here->now()));
}

void sim_link::kick() {
  if (std::exchange(kicked_, true))
    return;
  at_.here->call_in(io_latency, [self = shared_from_this()] {
    self->kicked_ = false;
    if (!self->ended_)
      self->step([](link::link_core&) {});
  });
}

void sim_link::act(link::effects todo) {
  if (todo.proven) {
    at_.of->write(at_.here->name(), label() + " proven");
    std::exchange(told_, {}).on_proven(shared_from_this(), std::move(todo.hello));
  }
  for (auto& m : todo.messages) {
    at_.of->write(at_.here->name(), fmt::format("< {} {}", at_.there, messages::to_text(m)));
    at_.of->tell(&observer::delivered, at_.here->name(), at_.there, m);
    ++outstanding_;
    events_.on_message(std::move(m));
  }
  at_.of->tell(&observer::link_load, at_.here->name(), core_.queued_bytes(), outstanding_);
  if (!todo.write.empty()) {
    out_->push(todo.write);
    writing_ = true;
    if (out_->outstanding() <= kernel_buffers)
      at_.here->call_in(io_latency, [self = shared_from_this()] { self->wrote(); });
  }
  if (todo.half_close)
    out_->finish(wire::tail::closed);
  if (todo.closed)
    return finish(todo.how, std::move(*todo.closed));
  reading_ = todo.read;
  if (reading_ && (in_->has_bytes() || in_->ended() != wire::tail::none))
    at_.here->call_in(io_latency, [self = shared_from_this()] { self->read(); });
  wake_at(todo.wake_at);
}

void sim_link::wrote() {
  if (ended_ || !writing_ || out_->outstanding() > kernel_buffers)
    return;
  writing_ = false;
  step([this](link::link_core& core) { core.written(at_.here->now()); });
}

void sim_link::read() {
  if (ended_ || !reading_)
    return;
  const auto chunk = in_->take(read_at_once);
  // The end of the stream is a read of its own, as it is of a socket.
  const auto end = chunk.empty() ? in_->ended() : wire::tail::none;
  if (chunk.empty() && end == wire::tail::none)
    return;
  const auto now = at_.here->now();
  if (!chunk.empty() && opened_ && at_.heard)
    *at_.heard = now;
  step([&](link::link_core& core) {
    if (!chunk.empty())
      core.received(now, link::bytes(chunk.data(), chunk.size()));
    if (end == wire::tail::reset && writing_)
      core.write_failed(now, {errc::closed, "the connection broke: reset by peer"});
    if (end == wire::tail::closed)
      core.ended(now, {errc::closed, "the peer closed the connection"});
    if (end == wire::tail::reset)
      core.ended(now, {errc::closed, "the connection broke: reset by peer"});
  });
}

void sim_link::wake_at(instant when) {
  if (when == instant::max() || (wake_planned_ && *wake_planned_ <= when))
    return;
  wake_planned_ = when;
  const auto delay = std::max(when - at_.here->now(), duration::zero()) + 1us;
  at_.here->call_in(delay, [self = shared_from_this(), when] {
    if (self->ended_ || self->wake_planned_ != when)
      return;
    self->wake_planned_.reset();
    const auto anybody = self->at_.heard ? *self->at_.heard : instant::max();
    self->step([&](link::link_core& core) { core.tick(self->at_.here->now(), anybody); });
  });
}

void sim_link::finish(ports::link_end how, error why) {
  at_.of->write(at_.here->name(), fmt::format("{} closed: {}", label(), why.what));
  ended_ = {how, why.what};
  tell_end(how);
  vanish(false);
  if (told_.on_failed)
    std::exchange(told_, {}).on_failed(std::move(why));
  if (opened_)
    std::exchange(events_, {}).on_closed(*ended_);
}

void sim_link::tell_end(ports::link_end how) {
  if (!std::exchange(end_told_, true))
    at_.of->tell(&observer::link_ended, at_.here->name(), at_.there, at_.connection, how);
}

void sim_link::vanish(bool silently) {
  if (std::exchange(vanished_, true))
    return;
  in_->on_arrival = nullptr;
  out_->on_room = nullptr;
  // Bytes without a reader are answered with a reset by the kernel, if there still is one.
  const bool unread = in_->has_bytes();
  in_->refuse(silently);
  if (!silently)
    out_->finish(unread ? wire::tail::reset : wire::tail::closed);
}

// ---- What owners call ----

void sim_link::open(ports::connection_events events) {
  at_.here->call_in(io_latency, [self = shared_from_this(), events = std::move(events)]() mutable {
    self->opened_ = true;
    if (self->ended_)
      return events.on_closed(*self->ended_);
    self->events_ = std::move(events);
    if (!self->end_told_)
      self->at_.of->tell(&observer::link_opened, self->at_.here->name(), self->at_.there,
                         self->at_.connection);
    self->step([&self](link::link_core& core) { core.opened(self->at_.here->now()); });
  });
}

result<void> sim_link::send(messages::any_msg m) {
  auto sent = core_.send(at_.here->now(), m);
  if (sent) {
    at_.of->write(at_.here->name(), fmt::format("> {} {}", at_.there, messages::to_text(m)));
    at_.of->tell(&observer::sent, at_.here->name(), at_.there, m);
  }
  kick();
  return sent;
}

void sim_link::taken() {
  if (outstanding_ > 0)
    --outstanding_;
  if (core_.taken(at_.here->now()))
    kick();
}

void sim_link::close(error why) {
  // Destructors of a process that is gone do nothing.
  if (!at_.here->alive() || ended_)
    return;
  tell_end(ports::link_end::closed);
  core_.close(at_.here->now(), std::move(why));
  kick();
}

void sim_link::abort(error why) {
  if (ended_)
    return;
  step([&](link::link_core& core) { core.abort(at_.here->now(), std::move(why)); });
}

} // namespace troupe::sim
