// Any bytes, in any chunks: the decoder gives frames or an error, and what it admits can be read
// and written again.

#include "messages/text.hpp"
#include "runtime/base/invariant.hpp"
#include "runtime/link/frame.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

using namespace troupe;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2)
    return 0;
  const std::size_t chunk_max = 1 + data[0] * 16u;
  const std::size_t payload_max =
      data[1] % 2 == 0 ? limits::frame_max : limits::handshake_frame_max;
  link::frame_decoder decoder(payload_max);
  std::vector<kj::byte> again;
  std::size_t consumed = 2;
  while (consumed < size) {
    link::bytes chunk(data + consumed, std::min(chunk_max, size - consumed));
    consumed += chunk.size();
    while (chunk.size() > 0) {
      auto taken = decoder.take(chunk);
      if (!taken) {
        invariant(!taken.error().what.empty(), "an error without words");
        return 0;
      }
      if (!*taken)
        continue;
      auto& frame = **taken;
      if (frame.message)
        (void)messages::to_text(frame.message);
      append(again, frame.message ? link::make_frame(frame.sequence, frame.message)
                                  : link::make_beat(frame.sequence));
    }
  }
  // What was taken as frames is the beginning of the input, byte for byte.
  invariant(again.size() <= size - 2, "more frames than bytes");
  invariant(again.empty() || std::memcmp(again.data(), data + 2, again.size()) == 0,
            "a frame has changed on its way");
  invariant(decoder.midway() == (again.size() < size - 2), "bytes were lost between frames");
  return 0;
}
