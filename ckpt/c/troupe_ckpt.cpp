#include "ckpt/c/troupe_ckpt.h"

#include "ckpt/c/process_arena.hpp"
#include "ckpt/image/archive.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <numeric>

using namespace troupe;
using namespace troupe::ckpt;

struct troupe_arena {
  std::unique_ptr<process_arena> own;
};

namespace {

void tell(std::string_view what, char* why, std::size_t why_bytes) {
  if (why_bytes == 0)
    return;
  const auto bytes = std::min(what.size(), why_bytes - 1);
  std::memcpy(why, what.data(), bytes);
  why[bytes] = '\0';
}

/// Nothing is thrown into a caller's language.
template<class Do>
int answer(char* why, std::size_t why_bytes, Do&& what) {
  try {
    const result<void> done = what();
    if (done)
      return 0;
    tell(done.error().what, why, why_bytes);
  } catch (const std::exception& e) {
    tell(e.what(), why, why_bytes);
  }
  return -1;
}

std::vector<bytes_at> all_of(const void* const* storages, const uint64_t* bytes, size_t count) {
  std::vector<bytes_at> all(count);
  for (std::size_t i = 0; i < count; ++i)
    all[i] = {static_cast<const char*>(storages[i]), bytes[i]};
  return all;
}

} // namespace

static_assert(TROUPE_ARENA_DESCRIPTORS == process_arena::descriptors_count);

troupe_arena* troupe_arena_open(uint32_t images, uint32_t threads, const int32_t* left, char* why,
                                size_t why_bytes) {
  troupe_arena* opened = nullptr;
  answer(why, why_bytes, [&]() -> result<void> {
    std::optional<process_arena::descriptors> all;
    if (left != nullptr)
      std::copy_n(left, all.emplace().size(), all->begin());
    auto own = process_arena::open(images, threads, all);
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
                               all_of(storages, storage_bytes, storage_count));
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
  return static_cast<uint32_t>(arena->own->images());
}

int troupe_save(troupe_arena* arena, const troupe_image* what, const void* pickle,
                uint64_t pickle_bytes, const void* const* storages, const uint64_t* storage_bytes,
                size_t storage_count, char* why, size_t why_bytes) {
  return answer(why, why_bytes, [&] {
    const slot_image image{what->step, what->generation, what->rank, what->world_size, 0};
    return arena->own->save(image, {static_cast<const char*>(pickle), pickle_bytes},
                            all_of(storages, storage_bytes, storage_count));
  });
}

int troupe_arena_copy_on_write(troupe_arena* arena, char* why, size_t why_bytes) {
  return answer(why, why_bytes, [&] { return arena->own->copy_on_write(); });
}

int troupe_saved(troupe_arena* arena, char* why, size_t why_bytes) {
  return answer(why, why_bytes, [&] { return arena->own->saved(); });
}

int troupe_newest(const troupe_arena* arena, troupe_image* found) {
  const auto slot = arena->own->newest();
  if (!slot)
    return 0;
  const auto& image = arena->own->image(*slot);
  *found = {image.step,
            image.generation,
            image.rank,
            image.world_size,
            image.bytes,
            *slot,
            arena->own->descriptor(*slot)};
  return 1;
}

int troupe_lend(troupe_arena* arena, uint64_t slot, char* why, size_t why_bytes) {
  return answer(why, why_bytes, [&] { return arena->own->lend(slot); });
}

int troupe_seal(troupe_arena* arena, uint64_t slot, char* why, size_t why_bytes) {
  return answer(why, why_bytes, [&] { return arena->own->seal(slot); });
}

int troupe_verify(const void* file, uint64_t bytes, char* why, size_t why_bytes) {
  return answer(why, why_bytes, [&] { return verify({static_cast<const char*>(file), bytes}); });
}
