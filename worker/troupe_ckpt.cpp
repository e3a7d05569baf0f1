#include "worker/troupe_ckpt.h"

#include "ckpt/snapshot/archive.hpp"
#include "worker/answer.hpp"
#include "worker/bytes_of.hpp"
#include "worker/process_arena.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

using namespace troupe;
using namespace troupe::ckpt;

struct troupe_mapping {
  slot_mapping own;
};

namespace {

troupe_image told(const process_arena& arena, std::size_t slot) {
  const auto& snapshot = arena.snapshot(slot);
  return {snapshot.step, snapshot.generation,  snapshot.save,
          snapshot.rank, snapshot.world_size,  snapshot.bytes,
          slot,          arena.sequence(slot), arena.descriptor(slot)};
}

} // namespace

static_assert(TROUPE_ARENA_SLOTS == slot_table::slots_max);
static_assert(TROUPE_ARENA_DESCRIPTORS == process_arena::descriptors_count);

namespace {

troupe_memory* opened_memory(
    const int32_t* descriptors,
    result<std::shared_ptr<arena_memory>> (*open)(const std::optional<arena_memory::descriptors>&),
    char* why, size_t why_bytes) {
  troupe_memory* opened = nullptr;
  answer(why, why_bytes, [&]() -> result<void> {
    std::optional<arena_memory::descriptors> all;
    if (descriptors != nullptr)
      std::copy_n(descriptors, all.emplace().size(), all->begin());
    auto own = open(all);
    if (!own)
      return tl::make_unexpected(own.error());
    opened = new troupe_memory{std::move(*own)};
    return {};
  });
  return opened;
}

} // namespace

troupe_memory* troupe_memory_open(const int32_t* left, char* why, size_t why_bytes) {
  return opened_memory(left, arena_memory::open, why, why_bytes);
}

troupe_memory* troupe_memory_view(const int32_t* descriptors, char* why, size_t why_bytes) {
  return opened_memory(
      descriptors,
      [](const std::optional<arena_memory::descriptors>& of) {
        return arena_memory::view(of.value());
      },
      why, why_bytes);
}

void troupe_memory_close(troupe_memory* memory) {
  delete memory;
}

troupe_arena* troupe_arena_open(uint32_t snapshots, uint32_t threads, troupe_memory* memory,
                                uint64_t place, const char* place_name, char* why,
                                size_t why_bytes) {
  troupe_arena* opened = nullptr;
  answer(why, why_bytes, [&]() -> result<void> {
    auto all = memory != nullptr ? memory->own : std::shared_ptr<arena_memory>();
    if (!all) {
      auto made = arena_memory::open(std::nullopt);
      if (!made)
        return tl::make_unexpected(made.error());
      all = std::move(*made);
    }
    auto own = process_arena::open(std::move(all), snapshots, threads, place, place_name);
    if (!own)
      return tl::make_unexpected(own.error());
    opened = new troupe_arena{std::move(*own)};
    return {};
  });
  return opened;
}

void troupe_arena_close(troupe_arena* arena) {
  delete arena;
}

int troupe_arena_prepare(troupe_arena* arena, uint64_t more, const void* const* storages,
                         const uint64_t* storage_bytes, size_t storage_count, char* why,
                         size_t why_bytes) {
  return answer(why, why_bytes, [&] {
    return arena->own->prepare(std::accumulate(storage_bytes, storage_bytes + storage_count, more),
                               bytes_of(storages, storage_bytes, storage_count));
  });
}

int troupe_arena_prepared(troupe_arena* arena, char* why, size_t why_bytes) {
  return answer(why, why_bytes, [&] { return arena->own->prepared(); });
}

void troupe_arena_descriptors(const troupe_arena* arena, int32_t* descriptors) {
  const auto all = arena->own->all_descriptors();
  std::copy(all.begin(), all.end(), descriptors);
}

uint32_t troupe_arena_images(const troupe_arena* arena) {
  return static_cast<uint32_t>(arena->own->snapshots());
}

int troupe_arena_notice(troupe_arena* arena, char* what, size_t what_bytes) {
  const auto line = arena->own->notice();
  if (!line || what_bytes == 0)
    return 0;
  const auto length = std::min(line->size(), what_bytes - 1);
  std::copy_n(line->begin(), length, what);
  what[length] = '\0';
  return 1;
}

troupe_arena* troupe_arena_view(troupe_memory* memory, uint64_t place, char* why,
                                size_t why_bytes) {
  troupe_arena* opened = nullptr;
  answer(why, why_bytes, [&]() -> result<void> {
    opened = new troupe_arena{process_arena::view(memory->own, place)};
    return {};
  });
  return opened;
}

int troupe_images_of_others(const troupe_arena* arena, char* lines, size_t room, char* why,
                            size_t why_bytes) {
  return answer(why, why_bytes, [&]() -> result<void> {
    std::string all;
    for (const auto slot : arena->own->newest_of_others())
      all += fmt::format("{}\t{}\n", arena->own->snapshot(slot).step, arena->own->place_name(slot));
    tell(all, lines, room);
    return {};
  });
}

int troupe_arena_pin_by(troupe_arena* arena, troupe_pin pin, troupe_unpin unpin, char* why,
                        size_t why_bytes) {
  return answer(why, why_bytes, [&]() -> result<void> {
    arena->own->pin_by(
        {[pin](char* begin, std::uint64_t bytes) { return pin(begin, bytes) == 0; }, unpin});
    return {};
  });
}

int troupe_request_persist(troupe_arena* arena, uint64_t slot, char* why, size_t why_bytes) {
  return answer(why, why_bytes, [&] { return arena->own->request_persist(slot); });
}

void troupe_set_rollback_point(troupe_arena* arena, uint64_t sequence) {
  arena->own->set_rollback_point(sequence);
}

int troupe_finalized(troupe_arena* arena, uint64_t slot, uint64_t sequence, uint64_t within_ms,
                     char* why, size_t why_bytes) {
  return finalized(*arena, slot, sequence, within_ms, purpose::disk, why, why_bytes);
}

int troupe_arena_copy_on_write(troupe_arena* arena, char* why, size_t why_bytes) {
  return answer(why, why_bytes, [&] { return arena->own->copy_on_write(); });
}

int troupe_images(const troupe_arena* arena, troupe_image* found) {
  const auto all = arena->own->newest_first();
  std::transform(all.begin(), all.end(), found,
                 [&](std::size_t slot) { return told(*arena->own, slot); });
  return static_cast<int>(all.size());
}

troupe_mapping* troupe_open_for_mapping(troupe_arena* arena, uint64_t slot, uint64_t sequence,
                                        char* why, size_t why_bytes) {
  troupe_mapping* made = nullptr;
  answer(why, why_bytes, [&]() -> result<void> {
    auto own = arena->own->open_for_mapping(slot, sequence);
    if (!own)
      return tl::make_unexpected(own.error());
    made = new troupe_mapping{std::move(*own)};
    return {};
  });
  return made;
}

void troupe_end_mapping(troupe_mapping* mapping) {
  delete mapping;
}

int troupe_seal(troupe_arena* arena, uint64_t slot, char* why, size_t why_bytes) {
  return answer(why, why_bytes, [&] { return arena->own->seal(slot); });
}

int troupe_verify(const void* file, uint64_t bytes, char* why, size_t why_bytes) {
  return answer(why, why_bytes, [&] { return verify({static_cast<const char*>(file), bytes}); });
}
