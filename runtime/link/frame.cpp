#include "runtime/link/frame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace troupe::link {

namespace {

template<class Integer>
void put(kj::byte* at, Integer value) {
  for (std::size_t i = 0; i < sizeof(Integer); ++i)
    at[i] = static_cast<kj::byte>(value >> (8 * i));
}

template<class Integer>
Integer get(const kj::byte* at) {
  Integer value = 0;
  for (std::size_t i = 0; i < sizeof(Integer); ++i)
    value |= static_cast<Integer>(at[i]) << (8 * i);
  return value;
}

/// What a peer that does not speak our protocol probably speaks, from its first bytes.
std::string stranger(const kj::byte* at) {
  const bool tls_record = (at[0] == 0x16 || at[0] == 0x15) && at[1] == 0x03;
  if (tls_record)
    return "the other end speaks TLS and this end does not: give certificates to both or to "
           "neither";
  return fmt::format(
      "the other end does not speak this protocol (its bytes: {:02x} {:02x} {:02x} {:02x})", at[0],
      at[1], at[2], at[3]);
}

/// Moves up to `wanted` bytes off the front of `from`.
std::size_t move_front(bytes& from, kj::byte* to, std::size_t wanted) {
  const auto n = std::min(from.size(), wanted);
  std::memcpy(to, from.begin(), n);
  from = from.slice(n, from.size());
  return n;
}

} // namespace

std::array<kj::byte, header_size> encode(const frame_header& header) {
  std::array<kj::byte, header_size> raw{};
  put(raw.data(), frame_magic);
  put(raw.data() + 4, header.words);
  put(raw.data() + 8, header.sequence);
  return raw;
}

out_frame make_frame(std::uint64_t sequence, messages::any_msg message) {
  const auto words = static_cast<std::uint32_t>(message.words().size());
  return {encode({words, sequence}), std::move(message)};
}

out_frame make_beat(std::uint64_t sequence) {
  return {encode({0, sequence}), {}};
}

void append(std::vector<kj::byte>& to, const out_frame& frame) {
  to.insert(to.end(), frame.header.begin(), frame.header.end());
  const auto body = frame.body();
  to.insert(to.end(), body.begin(), body.end());
}

frames_place append_some(std::vector<kj::byte>& to, const std::vector<out_frame>& frames,
                         frames_place from, std::size_t most) {
  for (auto& [frame, byte] = from; frame < frames.size() && most > 0;) {
    const auto& f = frames[frame];
    const auto body = f.body();
    const bool in_header = byte < f.header.size();
    const auto* const begin =
        in_header ? f.header.data() + byte : body.begin() + (byte - f.header.size());
    const auto left = (in_header ? f.header.size() : f.size()) - byte;
    const auto n = std::min(left, most);
    to.insert(to.end(), begin, begin + n);
    byte += n;
    most -= n;
    if (byte == f.size()) {
      ++frame;
      byte = 0;
    }
  }
  return from;
}

result<std::optional<frame>> frame_decoder::take(bytes& from) {
  if (header_got_ < header_size) {
    header_got_ += move_front(from, raw_header_.data() + header_got_, header_size - header_got_);
    // At once: a foreign peer may send nothing after its first bytes.
    if (header_got_ >= sizeof frame_magic && get<std::uint32_t>(raw_header_.data()) != frame_magic)
      return failure(errc::invalid, stranger(raw_header_.data()));
    if (header_got_ < header_size)
      return std::nullopt;
    if (auto judged = judge_header(); !judged)
      return tl::make_unexpected(judged.error());
  }
  if (!fill_body(from))
    return std::nullopt;
  return finish();
}

result<void> frame_decoder::judge_header() {
  header_ = {get<std::uint32_t>(raw_header_.data() + 4),
             get<std::uint64_t>(raw_header_.data() + 8)};
  const auto size = std::uint64_t{header_.words} * sizeof(capnp::word);
  if (size > payload_max_)
    return failure(errc::invalid, fmt::format("a frame of {} bytes where at most {} are allowed",
                                              size, payload_max_));
  return {};
}

/// Doubles the body's memory, or allocates the first piece of it, up to the frame's length.
void frame_decoder::make_room() {
  const auto least = first_allocation / sizeof(capnp::word);
  const auto room = std::min<std::size_t>(header_.words, std::max(least, body_.size() * 2));
  auto larger = kj::heapArray<capnp::word>(room);
  if (body_got_ > 0)
    std::memcpy(larger.begin(), body_.begin(), body_got_);
  body_ = kj::mv(larger);
}

/// Whether the body is whole.
bool frame_decoder::fill_body(bytes& from) {
  const auto size = std::size_t{header_.words} * sizeof(capnp::word);
  while (body_got_ < size) {
    if (from.size() == 0)
      return false;
    if (body_got_ == body_.size() * sizeof(capnp::word))
      make_room();
    auto room = body_.asPtr().asBytes();
    body_got_ += move_front(from, room.begin() + body_got_, room.size() - body_got_);
  }
  return true;
}

result<std::optional<frame>> frame_decoder::finish() {
  header_got_ = 0;
  body_got_ = 0;
  if (header_.words == 0)
    return frame{header_.sequence, {}};
  auto message = messages::admit(kj::mv(body_));
  body_ = nullptr;
  if (!message)
    return tl::make_unexpected(std::move(message.error()));
  return frame{header_.sequence, std::move(*message)};
}

} // namespace troupe::link
