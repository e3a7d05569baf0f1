#include "ckpt/snapshot/archive.hpp"
#include "runtime/base/invariant.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

/// Anybody's bytes as an archive: whatever they are, nothing outside of them is read or written,
/// and what was sealed is whole.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  std::string snapshot(reinterpret_cast<const char*>(data), size);
  snapshot.shrink_to_fit();
  const auto entries = ckpt::read_archive(snapshot);
  if (entries)
    for (const auto& e : *entries)
      invariant(e.data <= snapshot.size() && e.bytes <= snapshot.size() - e.data,
                "a record lies outside");
  invariant(ckpt::seal(snapshot.data(), snapshot.size()).has_value() == entries.has_value(),
            "sealing judges otherwise than reading");
  (void)ckpt::verify(snapshot);
  return 0;
}
