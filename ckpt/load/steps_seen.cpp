#include "ckpt/load/steps_seen.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::ckpt {

result<void> see_steps(ports::storage& storage, std::size_t most, rank_view& into) {
  const auto known = step_catalog::open(storage, step_catalog::expects_no_files);
  if (!known)
    return tl::make_unexpected(known.error());
  into.disk.clear();
  const auto complete = known->complete_newest_first();
  into.more_on_disk = complete.size() > most;
  for (const auto* found : complete) {
    if (into.disk.size() == most)
      break;
    into.disk.push_back({{found->says.id(), found->step},
                         found->says.world_size,
                         static_cast<std::uint32_t>(found->says.shards.size())});
  }
  return {};
}

result<shard_to_read> find_shard(ports::storage& storage, const state_id& of,
                                 std::uint32_t number) {
  auto known = step_catalog::open_one(storage, of.step);
  if (!known)
    return tl::make_unexpected(known.error());
  const auto* found = known->find(of.step);
  if (found == nullptr)
    return failure(errc::invalid, fmt::format("step {} is not there any more", of.step));
  if (!found->is_complete())
    return failure(errc::invalid, fmt::format("step {} is not complete: {}", of.step, found->why));
  if (found->says.id() != of.save)
    return failure(errc::invalid, fmt::format("step {} was saved again meanwhile", of.step));
  if (number >= found->says.shards.size())
    return failure(errc::invalid, fmt::format("step {} has {} shards, and none of number {}",
                                              of.step, found->says.shards.size(), number));
  return shard_to_read{*found, found->says.shards[number]};
}

} // namespace troupe::ckpt
