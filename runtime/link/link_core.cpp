#include "runtime/link/link_core.hpp"

#include "runtime/base/invariant.hpp"
#include "runtime/link/hello.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::link {

result<void> validate(const options& o) {
  if (o.beat_every <= duration::zero() || o.lease < 4 * o.beat_every)
    return failure(errc::invalid,
                   fmt::format("a link's lease may not be shorter than four beats ({} against {})",
                               in_words(o.lease), in_words(o.beat_every)));
  if (o.handshake_within <= duration::zero() || o.dial_within <= duration::zero() ||
      o.linger_max <= duration::zero())
    return failure(errc::invalid, "a link's deadlines must be longer than nothing");
  if (o.send_queue_max < limits::frame_max + header_size || o.credit_messages == 0)
    return failure(errc::invalid,
                   "a link must be able to hold at least one message in each direction");
  return {};
}

link_core::link_core(role r, const options& o, instant now, instant prove_by)
    : role_(r), options_(o), prove_by_(prove_by), decoder_(limits::handshake_frame_max),
      peer_({o.beat_every, o.lease / 2, silent_for_max(o, r == role::acceptor)}, now),
      spared_until_(now), last_wrote_(now) {
  const auto valid = validate(o);
  invariant(valid.has_value(), valid ? "" : valid.error().what);
}

link_core link_core::accepting(const options& o, instant now) {
  return link_core(role::acceptor, o, now, now + o.handshake_within);
}

link_core link_core::dialling(const options& o, instant now, instant prove_by,
                              const messages::msg<messages::Hello>& hello) {
  link_core core(role::dialler, o, now, prove_by);
  core.enqueue_message(hello.any());
  return core;
}

void link_core::ready(instant now, std::optional<std::vector<std::string>> peer_names) {
  invariant(!ready_, "a link became ready twice");
  ready_ = true;
  peer_names_ = std::move(peer_names);
  follow_listening(now);
}

// ---- Phases ----

void link_core::become_open(instant now) {
  phase_.become(phase::open);
  decoder_.accept_up_to(limits::frame_max);
  next_.proven = true;
  // Tells the dialler that its Hello was taken; see phase::handshake.
  if (role_ == role::acceptor)
    enqueue(make_beat(last_sent_));
  follow_listening(now);
}

void link_core::become_closing(instant now, error why) {
  // A dialler without an answer has no peer for last messages, and an owner that waits.
  if (phase_ == phase::handshake && role_ == role::dialler)
    return become_closed(std::move(why));
  phase_.become(phase::closing);
  why_ = std::move(why);
  linger_until_ = now + options_.linger_max;
  unread_ = {};
  // Nothing of ours can go out, so there is nothing to wait for.
  if (!ready_ || !can_write_)
    become_closed(why_);
}

void link_core::become_closed(error why, ports::link_end how) {
  phase_.become(phase::closed);
  why_ = std::move(why);
  next_.closed = why_;
  next_.how = how;
  queue_.clear();
  queued_bytes_ = 0;
  unread_ = {};
}

// ---- Receiving ----

bool link_core::delivering() const {
  return phase_ == phase::handshake || (phase_ == phase::open && owner_listens_ && !throttled_);
}

bool link_core::listening() const {
  return ready_ && (phase_ == phase::closing || (delivering() && unread_.empty()));
}

void link_core::opened(instant now) {
  invariant(phase_ != phase::handshake,
            "a link was opened by its owner before the peer has proven itself");
  owner_listens_ = true;
  follow_listening(now);
}

void link_core::received(instant now, bytes chunk) {
  if (phase_ == phase::closed)
    return;
  invariant(listening(), "bytes came in although reading was paused");
  notice_absence(now);
  peer_.heard(now);
  if (phase_ != phase::closing)
    digest(now, chunk);
  follow_listening(now);
}

void link_core::digest(instant now, bytes chunk) {
  while (chunk.size() > 0 && delivering()) {
    auto taken = decoder_.take(chunk);
    if (!taken) {
      // It may be one of ours with another version or a wrong certificate: then it hears why.
      if (phase_ == phase::handshake)
        return refuse(now, std::move(taken.error()));
      return become_closing(now, std::move(taken.error()));
    }
    if (*taken)
      arrive(now, std::move(**taken));
  }
  if (phase_ == phase::open)
    unread_.assign(chunk.begin(), chunk.end());
}

void link_core::arrive(instant now, frame f) {
  const bool beat = !f.message;
  const auto due = beat ? last_received_ : last_received_ + 1;
  // A beat shows a loss as well: it carries the number of the last message before it.
  TROUPE_RARE_IF(f.sequence > due, "link: a message is missing");
  if (f.sequence > due)
    return become_closing(
        now, {errc::invalid, fmt::format("the peer's message {} never came", last_received_ + 1)});
  if (phase_ == phase::handshake)
    return role_ == role::acceptor ? meet_dialler(now, f) : meet_acceptor(now, f);
  // After a repeat nothing is missing, so the link goes on.
  const bool repeated = f.sequence < due;
  TROUPE_RARE_IF(repeated, "link: a message is repeated");
  if (beat || repeated)
    return;
  last_received_ = f.sequence;
  next_.messages.push_back(std::move(f.message));
  if (++outstanding_ >= options_.credit_messages)
    throttled_ = true;
}

/// The acceptor took our Hello, or says why not.
void link_core::meet_acceptor(instant now, const frame& f) {
  if (!f.message)
    return become_open(now);
  if (!f.message.is<messages::Refused>())
    return become_closing(now, {errc::invalid, "the first frame in answer to our Hello is " +
                                                   messages::kind_name(f.message.kind()) +
                                                   " instead of a beat"});
  auto refused = f.message.as<messages::Refused>().read();
  become_closing(
      now, {refused->getRetry() ? errc::unavailable : errc::refused, refused->getReason().cStr()});
}

void link_core::meet_dialler(instant now, const frame& f) {
  if (auto fine = check_hello(f); !fine)
    return refuse(now, std::move(fine.error()));
  last_received_ = f.sequence;
  next_.hello = f.message.as<messages::Hello>();
  become_open(now);
}

result<void> link_core::check_hello(const frame& f) const {
  if (!f.message.is<messages::Hello>())
    return failure(errc::invalid,
                   fmt::format("the first frame is {} instead of a Hello",
                               f.message ? messages::kind_name(f.message.kind()) : "a beat"));
  if (f.sequence != 1)
    return failure(errc::invalid, "the Hello is not the peer's first message");
  if (!peer_names_)
    return {};
  return check_names(*peer_names_, *f.message.as<messages::Hello>().read());
}

void link_core::refuse(instant now, error why) {
  if (role_ == role::acceptor && why.code == errc::refused)
    enqueue_message(messages::build<messages::Refused>({}, [&why](messages::Refused::Builder out) {
                      out.setReason(why.what);
                      out.setRetry(false);
                    }).any());
  become_closing(now, std::move(why));
}

bool link_core::taken(instant now) {
  if (phase_ != phase::open)
    return false;
  invariant(outstanding_ > 0, "more messages were taken than delivered");
  --outstanding_;
  // Half of the credit at once, so that a saturated link does not wake the transport for every
  // message.
  if (!throttled_ || outstanding_ > options_.credit_messages / 2)
    return false;
  throttled_ = false;
  follow_listening(now);
  return true;
}

void link_core::ended(instant now, error why) {
  if (phase_ == phase::closed)
    return;
  if (phase_ == phase::closing)
    return become_closed(why_);
  notice_absence(now);
  // A peer that takes this end for dead closes the link and dials again; no answer reached it.
  const bool paused_here = absent_at_ && now - *absent_at_ <= 2 * options_.beat_every;
  become_closed(std::move(why),
                paused_here ? ports::link_end::paused_here : ports::link_end::closed);
}

// ---- Sending ----

void link_core::enqueue(out_frame f) {
  queued_bytes_ += f.size();
  queue_.push_back(std::move(f));
}

void link_core::enqueue_message(messages::any_msg m) {
  enqueue(make_frame(++last_sent_, std::move(m)));
}

result<void> link_core::send(instant, messages::any_msg m) {
  invariant(static_cast<bool>(m), "an empty message was sent");
  invariant(phase_ != phase::handshake, "a message was sent before the peer has proven itself");
  if (phase_ != phase::open)
    return failure(errc::closed, "the link has ended: " + why_.what);
  if (queued_bytes_ + header_size + m.size_bytes() > options_.send_queue_max) {
    become_closed(
        {errc::overloaded, fmt::format("the peer has fallen behind by {} bytes", queued_bytes_)});
    return tl::make_unexpected(why_);
  }
  enqueue_message(std::move(m));
  return {};
}

std::vector<out_frame> link_core::next_batch() {
  std::vector<out_frame> batch;
  while (!queue_.empty() && batch.size() < limits::gather_frames_max) {
    const auto size = queue_.front().size();
    if (!batch.empty() && in_flight_bytes_ + size > limits::gather_bytes_max)
      break;
    in_flight_bytes_ += size;
    batch.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return batch;
}

void link_core::written(instant now) {
  if (phase_ == phase::closed)
    return;
  queued_bytes_ -= in_flight_bytes_;
  in_flight_bytes_ = 0;
  last_wrote_ = now;
}

void link_core::write_failed(instant, error why) {
  if (phase_ == phase::closed)
    return;
  can_write_ = false;
  // From now on nothing shows whether our last messages arrived or the peer is there.
  if (phase_ != phase::open)
    become_closed(phase_ == phase::closing ? why_ : std::move(why));
}

// ---- Ending ----

void link_core::close(instant now, error why) {
  if (phase_ == phase::handshake || phase_ == phase::open)
    become_closing(now, std::move(why));
}

void link_core::abort(instant, error why) {
  if (phase_ != phase::closed)
    become_closed(phase_ == phase::closing ? why_ : std::move(why));
}

// ---- Time ----

/// Starts the peer's clock anew when we begin to listen again: it cannot have been heard before.
void link_core::follow_listening(instant now) {
  if (listening() && !was_listening_)
    peer_.begin_anew(now);
  was_listening_ = listening();
}

instant link_core::silence_ends_it_at() const {
  return std::max(peer_.dead_at(), spared_until_);
}

/// We were stopped, or starved: what the peer has said meanwhile waits to be read, and that comes
/// first. Being a little late is not held against the peer either, but only for a beat in all.
void link_core::notice_absence(instant now) {
  if (asked_to_wake_at_ == instant::max() || now <= asked_to_wake_at_)
    return;
  const auto late = now - asked_to_wake_at_;
  if (late > options_.beat_every)
    spared_until_ = now + 2 * options_.beat_every;
  else if (late > options_.beat_every / 10)
    spared_until_ =
        std::max(spared_until_, std::min(now + late, peer_.dead_at() + options_.beat_every));
  // The peer's patience is at least half a lease and a beat, and its last sign of us a beat old.
  TROUPE_RARE_IF(late > options_.beat_every, "link: this process was stopped for a while");
  if (late >= std::max(options_.lease / 2 - options_.beat_every, options_.beat_every))
    absent_at_ = now;
  asked_to_wake_at_ = now;
}

instant link_core::next_deadline() const {
  switch (phase_) {
  case phase::handshake:
    return std::max(prove_by_, spared_until_);
  case phase::open: {
    const auto beat = idle() && can_write_ ? last_wrote_ + options_.beat_every : instant::max();
    return std::min(beat, listening() ? silence_ends_it_at() : instant::max());
  }
  case phase::closing:
    return linger_until_;
  case phase::closed:
    break;
  }
  return instant::max();
}

void link_core::tick(instant now, instant anybody_heard_at) {
  notice_absence(now);
  switch (phase_) {
  case phase::handshake:
    if (now >= next_deadline())
      become_closing(now,
                     {errc::unavailable,
                      role_ == role::acceptor
                          ? fmt::format("no Hello within {}", in_words(options_.handshake_within))
                          : std::string("the other end did not answer our Hello in time")});
    break;
  case phase::open:
    if (listening() && now >= silence_ends_it_at()) {
      // Compared with the last sign of this peer, and not with now: two peers fall silent together
      // when the network here is cut.
      const auto isolated = anybody_heard_at - peer_.last_heard() <= 2 * options_.beat_every;
      return become_closed({errc::unavailable, fmt::format("nothing heard for {}",
                                                           in_words(now - peer_.last_heard()))},
                           isolated ? ports::link_end::isolated : ports::link_end::silent);
    }
    if (idle() && can_write_ && now >= last_wrote_ + options_.beat_every)
      enqueue(make_beat(last_sent_));
    break;
  case phase::closing:
    // What waited while this process was paused may go out now, but only once for a link.
    if (now >= linger_until_ && now < spared_until_ && !std::exchange(linger_spared_, true))
      linger_until_ = spared_until_;
    else if (now >= linger_until_)
      become_closed(why_);
    break;
  case phase::closed:
    break;
  }
}

effects link_core::react(instant now) {
  if (!unread_.empty() && delivering()) {
    const auto chunk = std::exchange(unread_, {});
    digest(now, bytes(chunk.data(), chunk.size()));
    follow_listening(now);
  }
  auto out = std::exchange(next_, effects{});
  const bool writing = ready_ && can_write_ && phase_ != phase::closed;
  if (writing && in_flight_bytes_ == 0)
    out.write = next_batch();
  if (writing && phase_ == phase::closing && idle() && !half_closed_)
    out.half_close = half_closed_ = true;
  out.read = listening();
  out.wake_at = asked_to_wake_at_ = next_deadline();
  return out;
}

} // namespace troupe::link
