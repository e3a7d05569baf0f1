#pragma once

#include "messages/kinds.hpp"
#include "messages/msg.hpp"
#include "runtime/base/phase_of.hpp"
#include "runtime/base/rare.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"
#include "runtime/link/failure_detector.hpp"
#include "runtime/link/frame.hpp"
#include "runtime/link/options.hpp"
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
inline constexpr phase_table<phase> link_phases{
    "a link",
    {
        {phase::handshake, "handshake", {phase::open, phase::closing, phase::closed}},
        {phase::open, "open", {phase::closing, phase::closed}},
        {phase::closing, "closing", {phase::closed}},
        {phase::closed, "closed", {}},
    }};
inline const char* to_string(phase p) {
  return link_phases.name(p);
}

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
/// Rules: any received byte is a sign of life. Silence is judged by `failure_detector`, only while
/// we listen, and not right after this process has been paused. A gap in the sequence ends the
/// link, a repeat is dropped. The send queue is bounded: beyond it the link ends.
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
  /// at once. The bound is on the peer's account: a node that reads nothing must not cost the
  /// master its memory, and a link that is given up is dialled again, with the whole state in the
  /// hello.
  result<void> send(instant now, messages::any_msg m);

  /// The batch of the last react() is with the kernel.
  void written(instant now);

  /// The batch could not be written. What the peer said before that is still heard; the reading
  /// side then ends the link.
  void write_failed(instant now, error why);

  /// The owner has taken one message. True if react() has something to do because of it. Not for
  /// every message, so that a busy link does not wake its transport all the time.
  bool taken(instant now);

  /// The peer has closed its direction, or the connection broke. What it means depends on us: the
  /// peer may have closed because this end was paused for so long that it looked dead.
  void ended(instant now, error why);

  /// The owner, or the transport, wants the link to end once what is queued has been sent. The
  /// reason that is given first is the one that is told.
  void close(instant now, error why);

  /// The same at once, whatever is queued.
  void abort(instant now, error why);

  /// Time has passed. When anybody was heard at the place where this peer came in: if it was no
  /// later than the peer itself, silence is no sign of its death. Beats go out here, and silence
  /// ends the link here: nothing else watches the clock.
  void tick(instant now, instant anybody_heard_at = instant::max());

  /// The only way out for results, so that whatever happened in between is one answer.
  effects react(instant now);

  phase now_in() const { return phase_; }
  std::size_t queued_bytes() const { return queued_bytes_; }

 private:
  link_core(role r, const options& o, instant now, instant prove_by);

  /// The memory bound for frames is raised here and nowhere else: an unproven peer can make this
  /// end hold no more than a hello. The acceptor's beat is the dialler's answer.
  void become_open(instant now);
  /// Last messages (a Goodbye, a Refused with its reason) are worth a wait, bounded by linger_max.
  /// A dialler in the handshake has none, and an owner that waits for the answer.
  void become_closing(instant now, error why);
  /// Once, whatever happens later: the first reason is the one that explains the others.
  void become_closed(error why, ports::link_end how = ports::link_end::closed);

  /// Stops in the middle of a chunk when the credit is used up; the rest waits in unread_, so that
  /// the bytes that a transport has read already are not lost.
  void digest(instant now, bytes chunk);
  /// A gap means that something was lost, and what it was cannot be asked for: the conversations
  /// are right about a lost link, not about a lost message. So any loss becomes that one event.
  void arrive(instant now, frame f);
  /// No actor hears of a peer before this has passed: whatever scans the port costs the master a
  /// connection and no more.
  void meet_dialler(instant now, const frame& f);
  /// A dial is answered by this frame and not by the connection: a wrong certificate is then the
  /// answer to the dial, and not the loss of a link that never carried anything.
  void meet_acceptor(instant now, const frame& f);
  /// Only a peer that speaks the protocol and is turned away hears the reason; garbage gets none.
  void refuse(instant now, error why);
  /// With certificates the name in the Hello must be the certificate's own: from here on the link
  /// speaks for that node.
  result<void> check_hello(const frame& f) const;

  void enqueue(out_frame f);
  void enqueue_message(messages::any_msg m);
  /// Bounded in frames and bytes. A frame that is larger than the bound goes alone: otherwise it
  /// would stop the queue for ever.
  std::vector<out_frame> next_batch();

  bool delivering() const;
  /// While this is false, silence is of our own making and is not judged.
  bool listening() const;
  /// A beat is for an end that has nothing to say. With bytes queued or on their way the peer gets
  /// its sign of life from those.
  bool idle() const { return queue_.empty() && in_flight_bytes_ == 0; }
  /// The later of two: what the failure detector believes, and what this end owes the peer after a
  /// pause of its own.
  instant silence_ends_it_at() const;
  /// By this an end also finds out that it was paused itself: a tick that comes much later than it
  /// was asked for.
  instant next_deadline() const;
  /// Called before anything is judged. A process that was stopped finds both its timer expired and
  /// the peer's bytes unread, and would else take a living peer for dead.
  void notice_absence(instant now);
  /// After a pause in reading the peer could not be heard: its silence begins now.
  void follow_listening(instant now);

  role role_;
  options options_;
  phase_of<link_phases> phase_{phase::handshake};
  /// An acceptor's is its own limit, a dialler's the end of its owner's patience.
  instant prove_by_;
  std::optional<std::vector<std::string>> peer_names_;
  bool ready_ = false;

  // Receiving.
  frame_decoder decoder_;
  /// Numbers begin with 1, at the Hello, in each direction.
  std::uint64_t last_received_ = 0;
  /// Before that everything but the Hello waits: messages to an actor that is not there yet would
  /// be lost.
  bool owner_listens_ = false;
  /// Goes up at the last message of the credit and down at half of it, so that a busy link does not
  /// pause and resume for each message.
  bool throttled_ = false;      ///< credit is used up and not yet half returned
  std::size_t outstanding_ = 0; ///< delivered and not taken
  std::vector<kj::byte>
      unread_; ///< the rest of a chunk that came with the one that used up the credit
  /// Hears of bytes and not of messages: a large message on a slow line is a sign of life all the
  /// while.
  failure_detector peer_;
  bool was_listening_ = false;
  /// A grace that this end owes the peer, and never more than two beats of it.
  instant spared_until_; ///< nothing is held against the peer before this, because we were the ones
                         ///< not there
  /// Long enough for the peer to have given us up: an end that follows soon after is *paused here*
  /// and not *closed*, and the node has more time to be back.
  std::optional<instant> absent_at_; ///< when we found that we had been away for long

  // Sending.
  std::uint64_t last_sent_ = 0;
  /// Beats and messages in one order: a beat carries the number of the last message before it.
  std::deque<out_frame> queue_;
  std::size_t queued_bytes_ = 0; ///< including those in flight
  /// One write at a time: the kernel's answer frees its bytes before the next batch is made.
  std::size_t in_flight_bytes_ = 0;
  /// False after a failed write: the reading side may still hold the peer's last words, a Refused
  /// or a Goodbye, which say more than the error does.
  bool can_write_ = true;
  instant last_wrote_;

  // Ending.
  error why_;
  instant linger_until_ = instant::max();
  /// Once for a link: an end that is always late would otherwise linger for ever.
  bool linger_spared_ = false; ///< it was prolonged, since we had been away
  /// Said once, behind the last byte: the peer takes it for the end of what this end has to say.
  bool half_closed_ = false;

  /// What the last react() asked for, against which a late tick shows a pause.
  instant asked_to_wake_at_ = instant::max();
  effects next_;
};

} // namespace troupe::link
