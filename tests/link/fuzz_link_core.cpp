// Bytes as a sequence of events at one end of a link, with a peer that may say anything. Whatever
// happens, what the core asks for makes sense, its memory is bounded and it ends once.

#include "runtime/base/invariant.hpp"
#include "runtime/link/link_core.hpp"
#include "tests/link/samples.hpp"

#include <algorithm>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

namespace {

/// Takes numbers off the front of the input; zero when there is nothing left.
class input {
 public:
  input(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
  bool empty() const { return at_ == end_; }
  unsigned next() { return empty() ? 0u : *at_++; }
  std::vector<kj::byte> take(std::size_t n) {
    n = std::min(n, static_cast<std::size_t>(end_ - at_));
    std::vector<kj::byte> taken(at_, at_ + n);
    at_ += n;
    return taken;
  }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

/// A shell that checks what it is told.
class checked_end {
 public:
  checked_end(link::role as, const link::options& o)
      : options_(o),
        core_(as == link::role::acceptor
                  ? link::link_core::accepting(o, now_)
                  : link::link_core::dialling(o, now_, now_ + o.dial_within, hello())) {
    core_.ready(now_);
    react();
  }

  void react() {
    auto todo = core_.react(now_);
    invariant(!(todo.proven && proven_), "proven twice");
    invariant(!(todo.closed && closed_), "closed twice");
    invariant(
        !(closed_ && (todo.proven || !todo.messages.empty() || !todo.write.empty() || todo.read)),
        "something was asked for after the end");
    invariant(todo.messages.empty() || opened_, "delivered before the owner listened");
    invariant(!(todo.half_close && half_closed_), "half closed twice");
    invariant(todo.write.empty() || !half_closed_, "written after the end of writing");
    invariant(todo.write.empty() || !in_flight_, "two batches at once");
    invariant(todo.write.size() <= limits::gather_frames_max, "a batch is too long");
    proven_ = proven_ || todo.proven;
    closed_ = closed_ || todo.closed.has_value();
    half_closed_ = half_closed_ || todo.half_close;
    in_flight_ = in_flight_ || !todo.write.empty();
    outstanding_ += todo.messages.size();
    read_ = todo.read;
    invariant(outstanding_ <= options_.credit_messages, "more was delivered than there is credit");
    invariant(core_.queued_bytes() <= options_.send_queue_max + 4096,
              "the send queue is not bounded");
    invariant(closed_ == (core_.now_in() == link::phase::closed), "the end was not told");
    invariant(closed_ || todo.wake_at != instant::max() || in_flight_ || !todo.read,
              "nothing would ever end this link");
  }

  void event(input& in) {
    switch (in.next() % 12) {
    case 0:
    case 1:
      deliver(in.take(in.next() * 4));
      break;
    case 2:
      deliver(on_wire(1 + in.next() % 8, numbered(in.next())));
      break;
    case 3:
      deliver(on_wire(1, hello().any()));
      break;
    case 4:
      deliver(beat_on_wire(in.next() % 8));
      break;
    case 5:
      if (proven_)
        send(in.next());
      break;
    case 6:
      if (in_flight_)
        core_.written(now_);
      in_flight_ = false;
      break;
    case 7:
      if (outstanding_ > 0 && !closed_) {
        core_.taken(now_);
        --outstanding_;
      }
      break;
    case 8:
      now_ += std::chrono::milliseconds(in.next() * 20);
      core_.tick(now_);
      break;
    case 9:
      if (proven_ && !opened_)
        core_.opened(now_);
      opened_ = opened_ || proven_;
      break;
    case 10:
      core_.close(now_, {errc::closed, "owner"});
      break;
    default:
      if (in.next() % 4 == 0)
        core_.ended(now_, {errc::closed, "peer"});
      if (in_flight_ && in.next() % 4 == 0)
        core_.write_failed(now_, {errc::closed, "broken"});
    }
    react();
  }

  /// However it was left, time alone brings it to an end once the peer is silent and our owner is
  /// gone. Being late is forgiven once.
  void must_end() {
    core_.close(now_, {errc::closed, "owner"});
    react();
    for (int times = 0; times < 2 && !closed_; ++times) {
      now_ += options_.linger_max;
      core_.tick(now_);
      react();
    }
    invariant(closed_, "a closed link lingers for ever");
  }

  bool closed() const { return closed_; }

 private:
  void deliver(const std::vector<kj::byte>& raw) {
    if (read_)
      core_.received(now_, view_of(raw));
  }

  void send(unsigned how) {
    const auto sent = core_.send(now_, how % 16 == 0 ? big_ : numbered(how));
    invariant(sent.has_value() || core_.now_in() != link::phase::open,
              "refused to send on an open link");
  }

  static const messages::any_msg big_;
  const link::options options_;
  instant now_ = instant{} + 1h;
  link::link_core core_;
  bool proven_ = false;
  bool opened_ = false;
  bool closed_ = false;
  bool half_closed_ = false;
  bool in_flight_ = false;
  bool read_ = false;
  std::size_t outstanding_ = 0;
};

const messages::any_msg checked_end::big_ = large(1, 3u << 20);

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  link::options o;
  o.credit_messages = 1 + in.next() % 8;
  o.send_queue_max = limits::frame_max + link::header_size;
  checked_end end(in.next() % 2 == 0 ? link::role::acceptor : link::role::dialler, o);
  while (!in.empty())
    end.event(in);
  end.must_end();
  return 0;
}
