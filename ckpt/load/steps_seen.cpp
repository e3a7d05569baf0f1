#include "ckpt/load/steps_seen.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::ckpt {

result<void> see_steps(ports::storage& storage, std::size_t most, rank_view& into,
                       unreadable_step what) {
  const auto known = step_catalog::open(storage, step_catalog::expects_no_files);
  if (!known)
    return tl::make_unexpected(known.error());
  for (const auto& [step, found] : known->steps())
    if (found.is_unreadable() && what == unreadable_step::is_an_error)
      return failure(errc::unavailable, fmt::format("step {} cannot be read: {}", step, found.why));
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

result<std::vector<step_passed_over>> steps_passed_over(ports::storage& storage,
                                                        const std::optional<save_id>& than) {
  const auto known = step_catalog::open(storage, step_catalog::expects_no_files);
  if (!known)
    return tl::make_unexpected(known.error());
  std::vector<step_passed_over> all;
  for (const auto& [step, found] : known->steps()) {
    const bool newer = !than || *than < found.begun_by || found.begun_by == save_id{};
    if (found.is_unreadable() || (found.state == step_state::damaged && newer))
      all.push_back({step, found.why});
  }
  return all;
}

result<shard_to_read> find_shard(ports::storage& storage, const state_id& of,
                                 std::uint32_t number) {
  auto known = step_catalog::open_one(storage, of.step);
  if (!known)
    return tl::make_unexpected(known.error());
  const auto* found = known->find(of.step);
  if (found == nullptr)
    return failure(errc::invalid, fmt::format("step {} is not there any more", of.step));
  if (found->is_unreadable())
    return failure(errc::unavailable,
                   fmt::format("step {} cannot be read: {}", of.step, found->why));
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
