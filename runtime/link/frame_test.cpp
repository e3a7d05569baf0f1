#include "runtime/link/frame.hpp"

#include "runtime/base/random.hpp"
#include "tests/link/samples.hpp"

#include <doctest/doctest.h>

#include <cstring>

using namespace troupe;
using namespace troupe::link;
using namespace troupe::testing;

namespace {

struct decoded {
  std::vector<frame> frames;
  std::optional<error> broken;
};

/// Feeds everything in chunks of at most `chunk_max` bytes, of lengths that `random` chooses.
decoded decode(const std::vector<kj::byte>& raw, random_source& random, std::size_t chunk_max,
               std::size_t payload_max = limits::frame_max) {
  decoded out;
  frame_decoder decoder(payload_max);
  for (std::size_t at = 0; at < raw.size() && !out.broken;) {
    const auto n = std::min<std::size_t>(raw.size() - at, 1 + random.below(chunk_max));
    bytes chunk(raw.data() + at, n);
    at += n;
    while (chunk.size() > 0 && !out.broken) {
      auto taken = decoder.take(chunk);
      if (!taken)
        out.broken = taken.error();
      else if (*taken)
        out.frames.push_back(std::move(**taken));
    }
  }
  return out;
}

bool same(const messages::any_msg& a, const messages::any_msg& b) {
  return a.size_bytes() == b.size_bytes() &&
         std::memcmp(a.words().begin(), b.words().begin(), a.size_bytes()) == 0;
}

std::vector<kj::byte> header_only(std::uint32_t words) {
  const auto raw = encode({words, 1});
  return {raw.begin(), raw.end()};
}

} // namespace

TEST_CASE("a header is sixteen bytes of little-endian magic, length and sequence") {
  const auto raw = encode({0x01020304, 0x1112131415161718});
  const std::array<kj::byte, header_size> expected{'T',  'R',  'P',  '1',  0x04, 0x03, 0x02, 0x01,
                                                   0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11};
  CHECK(raw == expected);
}

TEST_CASE("frames survive any chunking") {
  std::vector<messages::any_msg> sent;
  std::vector<kj::byte> raw;
  for (std::uint64_t i = 1; i <= 20; ++i) {
    sent.push_back(i % 7 == 0 ? large(i, 200'000) : numbered(i, std::string(i * 3, 'a')));
    append(raw, make_frame(i, sent.back()));
    if (i % 5 == 0)
      append(raw, make_beat(i));
  }
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    random_source random(seed);
    const std::size_t chunk_max = seed % 3 == 0 ? 7 : seed % 3 == 1 ? 1'000 : 100'000;
    const auto got = decode(raw, random, chunk_max);
    REQUIRE_FALSE(got.broken);
    std::vector<messages::any_msg> messages;
    for (const auto& f : got.frames)
      if (f.message)
        messages.push_back(f.message);
    REQUIRE(got.frames.size() == 24);
    REQUIRE(messages.size() == sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i)
      CHECK(same(messages[i], sent[i]));
  }
}

TEST_CASE("corrupted bytes give frames or an error") {
  std::vector<kj::byte> raw;
  for (std::uint64_t i = 1; i <= 4; ++i)
    append(raw, make_frame(i, hello("node-" + std::to_string(i)).any()));
  std::size_t errors = 0;
  for (std::uint64_t seed = 1; seed <= 3'000; ++seed) {
    random_source random(seed);
    auto bad = raw;
    for (std::uint64_t flips = 1 + random.below(4); flips > 0; --flips)
      bad[random.below(bad.size())] ^= static_cast<kj::byte>(1u << random.below(8));
    const auto got = decode(bad, random, 300);
    CHECK(got.frames.size() <= 4);
    for (const auto& f : got.frames)
      if (f.message.is<messages::Hello>())
        CHECK(f.message.as<messages::Hello>().read()->getNode().size() <= bad.size());
    if (got.broken)
      ++errors;
  }
  CHECK(errors > 300); // every flip in a magic or a high length byte must have been seen
}

TEST_CASE("a length is judged before its body comes") {
  random_source random(1);
  const auto allowed =
      static_cast<std::uint32_t>(limits::handshake_frame_max / sizeof(capnp::word));
  CHECK_FALSE(decode(header_only(allowed), random, 100, limits::handshake_frame_max).broken);
  for (const std::uint32_t words : {allowed + 1, 0x7fffffffu, 0xffffffffu}) {
    const auto got = decode(header_only(words), random, 100, limits::handshake_frame_max);
    REQUIRE(got.broken);
    CHECK(got.broken->code == errc::invalid);
    CHECK(got.broken->what.find("at most 262144") != std::string::npos);
  }
}

TEST_CASE("the limit can be raised between frames") {
  const auto big = large(1, limits::handshake_frame_max);
  frame_decoder decoder(limits::handshake_frame_max);
  decoder.accept_up_to(limits::frame_max);
  const auto raw = on_wire(1, big);
  auto chunk = view_of(raw);
  auto taken = decoder.take(chunk);
  REQUIRE(taken);
  REQUIRE(*taken);
  CHECK(same((*taken)->message, big));
}

TEST_CASE("a peer that speaks another protocol is named") {
  const auto error_text = [](std::string text) {
    text.resize(header_size, ' ');
    random_source random(1);
    const auto got = decode({text.begin(), text.end()}, random, 100);
    REQUIRE(got.broken);
    return got.broken->what;
  };
  CHECK(error_text("\x16\x03\x01").find("speaks TLS") != std::string::npos);
  CHECK(error_text("\x15\x03\x03").find("speaks TLS") != std::string::npos);
  // A TLS alert is all that a TLS server says to us, and shorter than a header.
  random_source random(1);
  CHECK(decode({0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x46}, random, 100).broken);
  CHECK(error_text("GET / HTTP/1.1").find("47 45 54 20") != std::string::npos);
}

TEST_CASE("half a frame is no frame") {
  const auto raw = on_wire(1, numbered(1));
  for (std::size_t n = 0; n < raw.size(); ++n) {
    frame_decoder decoder(limits::frame_max);
    bytes chunk(raw.data(), n);
    const auto taken = decoder.take(chunk);
    REQUIRE(taken);
    CHECK_FALSE(*taken);
    CHECK(decoder.midway() == (n > 0));
  }
}

TEST_CASE("frames in parts of any size are the frames in one piece") {
  const std::vector<out_frame> frames{make_frame(1, hello("a").any()), make_beat(1),
                                      make_frame(2, hello(std::string(200, 'b')).any())};
  std::vector<kj::byte> whole;
  for (const auto& f : frames)
    append(whole, f);
  for (std::size_t most = 1; most <= whole.size() + 1; ++most) {
    CAPTURE(most);
    std::vector<kj::byte> parts;
    for (frames_place at; !at.at_end(frames);) {
      const auto before = parts.size();
      at = append_some(parts, frames, at, most);
      REQUIRE(parts.size() - before == std::min(most, whole.size() - before));
    }
    REQUIRE(parts == whole);
  }
}
