#pragma once

#include "messages/limits.hpp"
#include "messages/msg.hpp"
#include "runtime/base/result.hpp"

#include <kj/array.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::link {

/// Received bytes; never owned.
using bytes = kj::ArrayPtr<const kj::byte>;

/// A frame is a header and one message of `words` words; no words is a beat. All numbers are little
/// endian.
///
///     magic u32 "TRP1" | words u32 | sequence u64
///
/// Messages are numbered from 1 in each direction. A beat carries the number of the last message
/// before it and takes none itself: it says "I am here, and this much I have said", so that a beat
/// too shows that something was lost.
struct frame_header {
  std::uint32_t words = 0;
  std::uint64_t sequence = 0;
};

inline constexpr std::size_t header_size = 16;
inline constexpr std::uint32_t frame_magic = 0x31505254;
static_assert(limits::frame_max / sizeof(capnp::word) <= UINT32_MAX);

std::array<kj::byte, header_size> encode(const frame_header& header);

/// A frame on its way out: the header, and the message's own words, shared and never copied.
struct out_frame {
  std::array<kj::byte, header_size> header{};
  messages::any_msg message; ///< empty: a beat

  bytes body() const { return message ? message.words().asBytes() : bytes(nullptr); }
  std::size_t size() const { return header_size + body().size(); }
};

out_frame make_frame(std::uint64_t sequence, messages::any_msg message);
out_frame make_beat(std::uint64_t sequence);

/// The frame as it appears on the wire, appended to `to`.
void append(std::vector<kj::byte>& to, const out_frame& frame);

/// A place in a row of frames.
struct frames_place {
  std::size_t frame = 0;
  std::size_t byte = 0; ///< of that frame

  bool at_end(const std::vector<out_frame>& frames) const { return frame >= frames.size(); }
};

/// Of several frames, from this place on, as many bytes as `most` allows; answers where it stopped.
frames_place append_some(std::vector<kj::byte>& to, const std::vector<out_frame>& frames,
                         frames_place from, std::size_t most);

/// A frame that has arrived whole and was admitted.
struct frame {
  std::uint64_t sequence = 0;
  messages::any_msg message; ///< empty: a beat
};

/// Turns chunks of any size into frames. A length is judged before anything is allocated for it,
/// and memory grows with the data that really came: a header alone makes a peer's connection no
/// heavier than `first_allocation`.
class frame_decoder {
 public:
  static constexpr std::size_t first_allocation = 64u << 10;

  explicit frame_decoder(std::size_t payload_max) : payload_max_(payload_max) {}

  /// From the next header on, payloads of up to this many bytes are accepted.
  void accept_up_to(std::size_t payload_max) { payload_max_ = payload_max; }

  /// Consumes from the front of `from` until one frame is whole (and is returned) or nothing is
  /// left. An error is final: `invalid` for bytes that are no frames or no message, `refused` for
  /// another major version of the protocol.
  result<std::optional<frame>> take(bytes& from);

  /// Whether a frame has begun and is not whole.
  bool midway() const { return header_got_ > 0; }

 private:
  result<void> judge_header();
  void make_room();
  bool fill_body(bytes& from);
  result<std::optional<frame>> finish();

  std::size_t payload_max_;
  std::array<kj::byte, header_size> raw_header_{};
  std::size_t header_got_ = 0;
  frame_header header_;
  kj::Array<capnp::word> body_;
  std::size_t body_got_ = 0; ///< bytes
};

} // namespace troupe::link
