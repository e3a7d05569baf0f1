#include "ckpt/load/steps_seen.hpp"

#include "ckpt/catalog/foreign_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
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
  for (const auto& odd : known->odd_directories())
    if (odd.state == step_state::unreadable && what == unreadable_step::is_an_error)
      return failure(errc::unavailable, fmt::format("'{}' cannot be read: {}", odd.name, odd.why));
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

namespace {

std::string in_words(std::uint64_t step) {
  return fmt::format("step {}", step);
}

/// A manifest or a directory that is gone leaves no other trace than the tracker that names it.
result<void> add_tracked(std::vector<step_passed_over>& all, ports::storage& storage,
                         const step_catalog& known, const std::optional<state_id>& than) {
  const auto named = tracked_steps(storage);
  if (!named)
    return tl::make_unexpected(named.error());
  std::set<std::uint64_t> told;
  for (const auto& one : *named) {
    const auto* found = known.find(one.step);
    const bool there = found != nullptr && found->is_complete();
    if (there || (than && one.step <= than->step) || !told.insert(one.step).second)
      continue;
    const auto of = fmt::format("'{}' names it", one.tracker);
    const auto before = std::find_if(
        all.begin(), all.end(), [&one](const auto& a) { return a.what == in_words(one.step); });
    if (before != all.end()) {
      if (!std::exchange(before->was_complete, true))
        before->why += fmt::format(", though {}", of);
    } else if (!one.directory.empty()) {
      all.push_back({in_words(one.step),
                     fmt::format("{}, and '{}' has no manifest of Troupe's", of, one.directory),
                     false});
    } else {
      all.push_back({in_words(one.step), fmt::format("{}, and it is not there", of), false});
    }
  }
  return {};
}

} // namespace

result<std::vector<step_passed_over>> steps_passed_over(ports::storage& storage,
                                                        const std::optional<state_id>& than) {
  const auto known = step_catalog::open(storage, step_catalog::expects_no_files);
  if (!known)
    return tl::make_unexpected(known.error());
  std::vector<step_passed_over> all;
  for (const auto& [step, found] : known->steps()) {
    const bool newer = !than || than->save < found.begun_by || found.begun_by == save_id{};
    if (found.is_unreadable() || (found.state == step_state::damaged && newer))
      all.push_back({in_words(step), found.why, true});
    else if (found.state == step_state::incomplete && newer)
      all.push_back({in_words(step), found.why, false});
  }
  for (const auto& odd : known->odd_directories())
    all.push_back({fmt::format("'{}'", odd.name), odd.why, true});
  if (auto added = add_tracked(all, storage, *known, than); !added)
    return tl::make_unexpected(std::move(added.error()));
  return all;
}

namespace {

/// A file of that size lies there, or it cannot be told.
bool may_have(ports::storage& storage, const found_step& f, std::uint32_t number) {
  if (number >= f.says.shards.size())
    return true;
  const auto& which = f.says.shards[number];
  const auto there = storage.list(file_in(f.directory, which.name));
  return !there || (there->size() == 1 && there->front().bytes == which.file.bytes);
}

/// By the number alone that is quick; what has no marker is looked for in all of it, and a copy
/// where a file of the step itself is gone.
result<found_step> find_state(ports::storage& storage, const state_id& of, std::uint32_t number) {
  const auto one = step_catalog::open_one(storage, of.step);
  if (!one)
    return tl::make_unexpected(one.error());
  const auto is_it = [&of](const found_step& f) {
    return f.is_complete() && f.step == of.step && f.says.id() == of.save;
  };
  const auto* found = one->find(of.step);
  if (found != nullptr &&
      (found->is_unreadable() || (is_it(*found) && may_have(storage, *found, number))))
    return *found;
  const auto all = step_catalog::open(storage, step_catalog::expects_no_files);
  if (!all)
    return tl::make_unexpected(all.error());
  for (const auto& copy : all->copies())
    if (is_it(copy) && may_have(storage, copy, number))
      return copy;
  for (const auto* other : all->complete_newest_first())
    if (is_it(*other))
      return *other;
  const auto* known = all->find(of.step);
  if (known == nullptr)
    return failure(errc::invalid, fmt::format("step {} is not there any more", of.step));
  return *known;
}

} // namespace

result<shard_to_read> find_shard(ports::storage& storage, const state_id& of,
                                 std::uint32_t number) {
  const auto found = find_state(storage, of, number);
  if (!found)
    return tl::make_unexpected(found.error());
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
