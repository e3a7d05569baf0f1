#include "runtime/os/memory/snapshot_memory.hpp"

#include "runtime/base/invariant.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::os {

result<void> check_table(const shared_memory& table, int descriptor) {
  if (table.bytes() == sizeof(ckpt::slot_table))
    return {};
  return failure(errc::invalid, fmt::format("descriptor {} holds no table of images", descriptor));
}

result<snapshot_memory> snapshot_memory::open(const std::vector<int>& descriptors) {
  invariant(descriptors.size() == ckpt::arena_descriptors,
            "snapshot memory is a table, slots, a ledger, a wake-up event");
  auto table = shared_memory::share(descriptors.front());
  if (!table)
    return tl::make_unexpected(table.error());
  if (const auto sound = check_table(*table, descriptors.front()); !sound)
    return tl::make_unexpected(sound.error());
  snapshot_memory opened;
  opened.table_ = std::move(*table);
  std::copy_n(descriptors.begin() + 1, opened.slots_.size(), opened.slots_.begin());
  opened.wake_event_ = descriptors.back();
  return opened;
}

} // namespace troupe::os
