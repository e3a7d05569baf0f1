#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"
#include "runtime/link/frame.hpp"
#include "runtime/link/options.hpp"
#include "runtime/link/suspicion.hpp"
#include "runtime/ports/transport.hpp"

#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace troupe::link {

enum class role : std::uint8_t { dialler, acceptor };

enum class phase : std::uint8_t {
  /// Nothing is believed yet. The acceptor waits for a Hello; the dialler has said it and waits for
  /// the answer: a beat, which
  /// means that the Hello was taken, or a Refused.
  handshake,
  /// Messages flow, beats fill the silence, silence ends the link.
  open,
  /// It has been decided to end. What is queued still goes out, then our direction is closed, and
  /// what comes in is thrown away
  /// until the peer has closed its direction too: closing with unread bytes would make the kernel
  /// destroy our last messages.
  closing,
  /// Over. The reason has been, or is about to be, told once.
  closed,
};

const char* to_string(phase p);

/// What the shell around a link has to do now. All but `read` and `wake_at` is told once.
struct effects {
  /// The peer has proven itself: the acceptor's `hello` is set, the dialler's is not.
  bool proven = false;
  messages::msg<messages::Hello> hello;
  /// For the owner, in order.
  std::vector<messages::any_msg> messages;
  /// One gathered write; answer with written() or write_failed(). The next batch comes after that.
  std::vector<out_frame> write;
  /// Nothing will be written any more: close the sending direction.
  bool half_close = false;
  /// The link has ended; drop the transport. `invalid` and `refused` are nothing that trying again
  /// would change.
  std::optional<error> closed;
  /// With `closed`: what that means for the peer.
  ports::link_end how = ports::link_end::closed;

  /// Whether received bytes are welcome. While not, the transport holds them back, so that the peer
  /// feels it.
  bool read = false;
  /// When tick() wants to be called, if nothing else happens.
  instant wake_at = instant::max();
};

/// One connection as a state machine, used by the Asio transport and by the simulated one alike:
/// everything that is decided about a link is decided here, and bytes are all it knows of a
/// network.
///
/// Events change it, react() then says what to do. It is not thread-safe, but only react() has
/// results: a shell may feed events from any thread under its lock, and call react() from the one
/// that does the I/O.
///
/// Rules: any received byte is a sign of life. Silence is judged by `suspicion`, only while we
/// listen, and not right after this process has been paused. A gap in the sequence ends the link,
/// a repeat is dropped. The send queue is bounded: beyond it the link ends.
class link_core {
 public:
  /// The end that was dialled.
  static link_core accepting(const options& o, instant now);

  /// The end that dials; `prove_by` is the end of its patience.
  static link_core dialling(const options& o, instant now, instant prove_by,
                            const messages::msg<messages::Hello>& hello);

  /// Bytes can flow: connected and, if that is wanted, encrypted. `peer_names` are those in the
  /// peer's certificate, if it has one: they must allow what an acceptor's Hello says.
  void ready(instant now, std::optional<std::vector<std::string>> peer_names = {});

  /// The owner wants to hear messages from now on.
  void opened(instant now);

  /// Bytes from the peer. Precondition: the last react() welcomed them.
  void received(instant now, bytes chunk);

  /// `closed` once the link has ended or begun to; `overloaded` if the queue is full, which ends it
  /// at once.
  result<void> send(instant now, messages::any_msg m);

  /// The batch of the last react() is with the kernel.
  void written(instant now);

  /// The batch could not be written. What the peer said before that is still heard; the reading
  /// side then ends the link.
  void write_failed(instant now, error why);

  /// The owner has taken one message. True if react() has something to do because of it.
  bool taken(instant now);

  /// The peer has closed its direction, or the connection broke.
  void ended(instant now, error why);

  /// The owner, or the transport, wants the link to end once what is queued has been sent.
  void close(instant now, error why);

  /// The same at once, whatever is queued.
  void abort(instant now, error why);

  /// Time has passed. When anybody was heard at the place where this peer came in: if it was no
  /// later than the peer itself, silence is no sign of its death.
  void tick(instant now, instant anybody_heard_at = instant::max());

  effects react(instant now);

  phase now_in() const { return phase_; }
  std::size_t queued_bytes() const { return queued_bytes_; }

 private:
  link_core(role r, const options& o, instant now, instant prove_by);

  void become_open(instant now);
  void become_closing(instant now, error why);
  void become_closed(error why, ports::link_end how = ports::link_end::closed);

  void digest(instant now, bytes chunk);
  void arrive(instant now, frame f);
  void meet_dialler(instant now, const frame& f);
  void meet_acceptor(instant now, const frame& f);
  void refuse(instant now, error why);
  result<void> check_hello(const frame& f) const;

  void enqueue(out_frame f);
  void enqueue_message(messages::any_msg m);
  std::vector<out_frame> next_batch();

  bool delivering() const;
  bool listening() const;
  bool idle() const { return queue_.empty() && in_flight_bytes_ == 0; }
  instant silence_ends_it_at() const;
  instant next_deadline() const;
  void notice_absence(instant now);
  void follow_listening(instant now);

  role role_;
  options options_;
  phase phase_ = phase::handshake;
  instant prove_by_;
  std::optional<std::vector<std::string>> peer_names_;
  bool ready_ = false;

  // Receiving.
  frame_decoder decoder_;
  std::uint64_t last_received_ = 0;
  bool owner_listens_ = false;
  bool throttled_ = false;      ///< credit is used up and not yet half returned
  std::size_t outstanding_ = 0; ///< delivered and not taken
  std::vector<kj::byte>
      unread_; ///< the rest of a chunk that came with the one that used up the credit
  suspicion peer_;
  bool was_listening_ = false;
  instant spared_until_; ///< nothing is held against the peer before this, because we were the ones
                         ///< not there
  std::optional<instant> absent_at_; ///< when we found that we had been away for long

  // Sending.
  std::uint64_t last_sent_ = 0;
  std::deque<out_frame> queue_;
  std::size_t queued_bytes_ = 0; ///< including those in flight
  std::size_t in_flight_bytes_ = 0;
  bool can_write_ = true;
  instant last_wrote_;

  // Ending.
  error why_;
  instant linger_until_ = instant::max();
  bool linger_spared_ = false; ///< it was prolonged, since we had been away
  bool half_closed_ = false;

  instant asked_to_wake_at_ = instant::max();
  effects next_;
};

} // namespace troupe::link
