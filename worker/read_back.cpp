#include "worker/read_back.hpp"

#include "ckpt/catalog/foreign_steps.hpp"
#include "ckpt/catalog/shard_files.hpp"
#include "ckpt/load/steps_seen.hpp"
#include "runtime/base/generations.hpp"
#include "runtime/os/storage/posix_storage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace troupe::ckpt {

namespace {

constexpr duration rest = 200ms;

state_id id_of(const slot_snapshot& s) {
  return {{generation{s.generation}, s.save}, s.step};
}

/// Does it, and again while storage fails with what may pass. An error names the place.
template<class Do>
auto tried(const std::string& place, Do&& what) -> decltype(what(std::declval<ports::storage&>())) {
  os::posix_storage storage(place);
  const auto until = std::chrono::steady_clock::now() + storage_tried_for;
  for (;;) {
    auto done = what(storage);
    if (done)
      return done;
    const auto& e = done.error();
    if (e.code != errc::unavailable || std::chrono::steady_clock::now() > until)
      return failure(e.code, fmt::format("'{}': {}", place, e.what));
    std::this_thread::sleep_for(rest);
  }
}

} // namespace

void see_memory(const process_arena& arena, const rank_in_world& who, rank_view& into) {
  into.holds = true;
  for (const auto slot : arena.newest_first()) {
    const auto& says = arena.snapshot(slot);
    // A shard of a state is not the whole of it, for a job that has one shard now.
    const auto shards = arena.shards(slot);
    if (shards != 0 && (shards != who.shards || (shards > 1 && says.world_size != who.world_size)))
      into.foreign.push_back(
          {id_of(says), says.bytes, says.rank, arena.shard(slot), shards, says.world_size});
    else if (who.shards == 1)
      into.memory.push_back({id_of(says), says.bytes, who.rank});
    else if (says.world_size == who.world_size)
      into.memory.push_back({id_of(says), says.bytes, says.rank});
  }
}

void see_parities(process_arena& of_others, place_id place, const rank_in_world& who,
                  rank_view& into) {
  for (const auto slot : of_others.newest_first()) {
    const auto sequence = of_others.sequence(slot);
    const auto says = of_others.snapshot(slot);
    const auto held = of_others.held_in(slot, sequence);
    if (place != 0 && place_in(says.save) != place_in(place))
      continue; // another place's
    if (!held || says.world_size != who.world_size || held->members > code::members_max)
      continue; // It went while this looked, or is of another world.
    parity_seen p{
        id_of(says), {held->members, held->parity}, held->stripe, held->row, slot, sequence, {}, {},
        {}};
    p.ranks.assign(held->ranks.begin(), held->ranks.begin() + held->members);
    p.bytes.assign(held->bytes.begin(), held->bytes.begin() + held->members);
    p.crc32.assign(held->crc32.begin(), held->crc32.begin() + held->members);
    into.parities.push_back(std::move(p));
  }
}

result<void> see_place(const std::string& place, std::size_t most, rank_view& into) {
  const auto seen =
      tried(place, [&](ports::storage& storage) { return see_steps(storage, most, into); });
  if (seen || seen.error().code != errc::unavailable)
    return seen;
  os::posix_storage storage(place);
  const auto most_of_it = see_steps(storage, most, into, unreadable_step::is_none);
  return most_of_it ? most_of_it : seen;
}

result<std::uint64_t> shard_bytes(const std::string& place, const state_id& of,
                                  std::uint32_t number) {
  return tried(place, [&](ports::storage& storage) {
    return find_shard(storage, of, number).and_then([&](const shard_to_read& found) {
      return memory_of(storage, found.of, found.which);
    });
  });
}

result<void> read_shard(const std::string& place, const state_id& of, std::uint32_t number,
                        char* into, std::uint64_t room) {
  return tried(place, [&](ports::storage& storage) -> result<void> {
    const auto found = find_shard(storage, of, number);
    if (!found)
      return tl::make_unexpected(found.error());
    const auto needed = memory_of(storage, found->of, found->which);
    if (!needed)
      return tl::make_unexpected(needed.error());
    if (*needed != room)
      return failure(errc::invalid, fmt::format("step {} was saved again meanwhile", of.step));
    return load_shard(storage, found->of, found->which, {reinterpret_cast<std::byte*>(into), room},
                      ports::never_stops);
  });
}

damage damage_of(const error& e, const std::string& place, const state_id& of,
                 std::uint32_t number) {
  if (e.code != errc::invalid && e.code != errc::absent)
    return damage::none;
  os::posix_storage storage(place);
  const auto found = find_shard(storage, of, number);
  if (!found)
    return damage::none;
  const auto sizes = check_shard_sizes(storage, found->of, found->which);
  if (sizes)
    return e.code == errc::invalid ? damage::bytes : damage::none;
  const bool lacks = sizes.error().code == errc::invalid || sizes.error().code == errc::absent;
  return lacks ? damage::lacks : damage::none;
}

result<std::string> passed_over_at(const std::string& place, const std::optional<state_id>& than) {
  os::posix_storage storage(place);
  return steps_passed_over(storage, than).map([](const std::vector<step_passed_over>& all) {
    std::string lines;
    for (const auto& one : all)
      lines += fmt::format("{}\t{}\t{:d}\n", one.what, one.why, one.was_complete);
    return lines;
  });
}

result<std::string> directory_at(const std::string& place, std::uint64_t step) {
  return tried(place, [step](ports::storage& storage) -> result<std::string> {
    const auto all = step_catalog::open(storage, step_catalog::expects_no_files);
    if (!all)
      return tl::make_unexpected(all.error());
    for (const auto* found : all->complete_newest_first())
      if (found->step == step)
        return found->directory;
    return std::string();
  });
}

result<generation> saves_as_at(const std::string& place, const run_at_start& who) {
  return tried(place, [&who](ports::storage& storage) { return saves_as(storage, who); });
}

result<std::vector<std::uint64_t>> begin_run_at(const std::string& place, const run_at_start& who,
                                                generation as, const origin& from) {
  os::posix_storage storage(place);
  return begin_run(storage, who, as, from).and_then([&] {
    return steps_of_others(storage, term_of(as));
  });
}

result<std::string> foreign_at(const std::string& place) {
  return tried(place, [](ports::storage& storage) {
    return foreign_steps(storage).map([](const std::vector<foreign_step>& all) {
      std::string lines;
      for (const auto& one : all)
        lines += fmt::format("{}\t{}\t{}\n", one.directory, one.step, one.tracker);
      return lines;
    });
  });
}

} // namespace troupe::ckpt
