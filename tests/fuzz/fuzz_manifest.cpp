#include "ckpt/catalog/manifest.hpp"
#include "runtime/base/invariant.hpp"

#include <fmt/format.h>
#include <libdeflate.h>

#include <cstddef>
#include <cstdint>
#include <string>

using namespace troupe;

namespace {

void judge(const std::string& text) {
  const auto read = ckpt::manifest_of(text);
  if (!read) {
    invariant(!read.error().what.empty(), "nothing is said of what is wrong");
    return;
  }
  invariant(ckpt::check(*read).has_value(), "what was read may not be written");
  const auto again = ckpt::to_text(*read);
  const auto reread = ckpt::manifest_of(again);
  invariant(reread.has_value(), "what was written cannot be read");
  invariant(ckpt::to_text(*reread) == again, "it is another manifest when it is read again");
}

} // namespace

/// Any bytes as a manifest, as they are and with the checksum that belongs to them: without it
/// chance would never come behind that.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  judge(text);
  judge(text + fmt::format("\"crc32\":{}}}\n", libdeflate_crc32(0, text.data(), text.size())));
  return 0;
}
