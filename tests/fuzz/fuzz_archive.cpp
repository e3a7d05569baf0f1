#include "ckpt/image/archive.hpp"
#include "runtime/base/invariant.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

/// Anybody's bytes as an archive: whatever they are, nothing outside of them is read or written,
/// and what was sealed is whole.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  std::string image(reinterpret_cast<const char*>(data), size);
  image.shrink_to_fit();
  const auto entries = ckpt::read_archive(image);
  if (entries)
    for (const auto& e : *entries)
      invariant(e.data <= image.size() && e.bytes <= image.size() - e.data,
                "a record lies outside");
  invariant(ckpt::seal(image.data(), image.size()).has_value() == entries.has_value(),
            "sealing judges otherwise than reading");
  (void)ckpt::verify(image);
  return 0;
}
