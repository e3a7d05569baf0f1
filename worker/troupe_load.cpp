#include "ckpt/load/load_numbers.hpp"
#include "worker/answer.hpp"
#include "worker/read_back.hpp"
#include "worker/troupe_ckpt.h"

#include <fmt/format.h>

#include <algorithm>

using namespace troupe;
using namespace troupe::ckpt;

namespace {

state_id id_of(const troupe_image& said) {
  return {{generation{said.generation}, said.save}, said.step};
}

/// Says how many there are, and gives them if there is room.
int given(const std::vector<std::uint64_t>& all, uint64_t* numbers, size_t room) {
  if (all.size() <= room)
    std::copy(all.begin(), all.end(), numbers);
  return static_cast<int>(all.size());
}

/// As `answer`, but that damage has a number of its own.
template<class Do>
int answer_of_read(const char* place, const troupe_image& of, uint32_t shard, char* why,
                   size_t why_bytes, Do&& what) {
  auto found = damage::none;
  const auto done = answer(why, why_bytes, [&]() -> result<void> {
    const auto read = what();
    if (!read)
      found = damage_of(read.error(), place, id_of(of), shard);
    return read;
  });
  return found == damage::none ? done : found == damage::lacks ? TROUPE_LACKING : TROUPE_DAMAGED;
}

} // namespace

int troupe_load_view(const troupe_arena* arena, troupe_arena* others, const char* place,
                     uint64_t steps, uint32_t rank, uint32_t world_size, uint32_t shards,
                     uint64_t* numbers, size_t room, char* why, size_t why_bytes) {
  return number(why, why_bytes, [&]() -> result<int> {
    const rank_in_world who{rank, world_size, shards};
    rank_view view;
    if (arena != nullptr)
      see_memory(*arena->own, who, view);
    if (others != nullptr)
      see_parities(*others->own, arena != nullptr ? arena->own->place() : 0, who, view);
    if (place != nullptr)
      if (const auto seen = see_place(place, steps, view); !seen)
        return tl::make_unexpected(seen.error());
    return given(to_numbers(view), numbers, room);
  });
}

int troupe_plan_load(const uint64_t* question, size_t count, uint64_t* plan, size_t room, char* why,
                     size_t why_bytes) {
  return number(why, why_bytes, [&]() -> result<int> {
    const auto asked = question_of(question, count);
    if (!asked)
      return tl::make_unexpected(asked.error());
    return given(to_numbers(plan_load(*asked)), plan, room);
  });
}

int troupe_shard_bytes(const char* place, troupe_image* of, uint32_t shard, char* why,
                       size_t why_bytes) {
  return answer_of_read(place, *of, shard, why, why_bytes, [&]() -> result<void> {
    const auto bytes = shard_bytes(place, id_of(*of), shard);
    if (!bytes)
      return tl::make_unexpected(bytes.error());
    of->bytes = *bytes;
    return {};
  });
}

int troupe_read_shard(const char* place, const troupe_image* of, uint32_t shard, void* memory,
                      char* why, size_t why_bytes) {
  return answer_of_read(place, *of, shard, why, why_bytes, [&] {
    return read_shard(place, id_of(*of), shard, static_cast<char*>(memory), of->bytes);
  });
}

int troupe_complete_steps(const char* place, uint64_t* steps, size_t room, char* why,
                          size_t why_bytes) {
  return number(why, why_bytes, [&]() -> result<int> {
    rank_view view;
    if (const auto seen = see_place(place, room, view); !seen)
      return tl::make_unexpected(seen.error());
    std::transform(view.disk.begin(), view.disk.end(), steps,
                   [](const step_on_disk& one) { return one.id.step; });
    return static_cast<int>(view.disk.size());
  });
}

int troupe_steps_passed_over(const char* place, const troupe_image* than, char* lines, size_t room,
                             char* why, size_t why_bytes) {
  return answer(why, why_bytes, [&]() -> result<void> {
    const auto found =
        passed_over_at(place, than != nullptr ? std::optional(id_of(*than)) : std::nullopt);
    if (!found)
      return tl::make_unexpected(found.error());
    tell(*found, lines, room);
    return {};
  });
}

int troupe_step_directory(const char* place, uint64_t step, char* directory, size_t room, char* why,
                          size_t why_bytes) {
  return answer(why, why_bytes, [&]() -> result<void> {
    const auto found = directory_at(place, step);
    if (!found)
      return tl::make_unexpected(found.error());
    tell(*found, directory, room);
    return {};
  });
}

int troupe_foreign_steps(const char* place, char* lines, size_t room, char* why, size_t why_bytes) {
  return answer(why, why_bytes, [&]() -> result<void> {
    const auto found = foreign_at(place);
    if (!found)
      return tl::make_unexpected(found.error());
    tell(*found, lines, room);
    return {};
  });
}
