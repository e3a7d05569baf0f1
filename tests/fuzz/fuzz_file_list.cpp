#include "ckpt/snapshot/bytes.hpp"
#include "ckpt/snapshot/snapshot_layout.hpp"
#include "runtime/base/invariant.hpp"

#include <libdeflate.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

using namespace troupe;

namespace {

void judge(std::string snapshot) {
  snapshot.shrink_to_fit();
  const auto list = ckpt::list_in(snapshot);
  if (!list) {
    invariant(!list.error().what.empty(), "nothing is said of what is wrong");
  } else {
    invariant(ckpt::check(*list).has_value(), "what was read may not be written");
    invariant(list->snapshot_bytes() == snapshot.size(), "it is not the list of this snapshot");
    for (const auto& f : list->files)
      invariant(f.begin <= list->begin && f.bytes <= list->begin - f.begin, "a file lies outside");
    std::string again(list->bytes(), '?');
    ckpt::write_list(again.data(), *list);
    invariant(again == snapshot.substr(list->begin), "it is another list when it is written");
  }
  const auto sealed = ckpt::seal_snapshot(snapshot.data(), snapshot.size());
  if (sealed && list)
    invariant(ckpt::list_in(snapshot).has_value(), "sealing has damaged the list");
}

} // namespace

/// Any bytes as a snapshot of several files: as they are; and as the list of one, behind `size`
/// modulo 3 empty blocks and with the end that belongs to it, without which chance would never come
/// behind the checksum.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  judge(text);
  const std::string blocks(size % 3 * ckpt::file_list::file_alignment, '\0');
  std::string list = "trpfiles" + text + std::string(20, '?');
  auto* const begin = list.data() + list.size() - 20;
  auto* const crc = ckpt::put(begin, std::uint64_t{blocks.size()});
  ckpt::put(ckpt::put(crc, libdeflate_crc32(0, list.data(), list.size() - 12)),
            std::string_view("trp-list"));
  judge(blocks + list);
  return 0;
}
