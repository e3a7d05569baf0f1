#include "ckpt/limits.hpp"
#include "ckpt/snapshot/file_list.hpp"
#include "worker/answer.hpp"
#include "worker/bytes_of.hpp"
#include "worker/process_arena.hpp"
#include "worker/troupe_ckpt.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

using namespace troupe;
using namespace troupe::ckpt;

namespace {

template<std::size_t Size>
result<void> put_text(std::array<char, Size>& to, const char* text, const char* which) {
  const std::string_view all(text);
  if (all.empty() || all.size() >= Size)
    return failure(errc::invalid, "the " + std::string(which) + " of a destination has 1 to " +
                                      std::to_string(Size - 1) + " bytes, not " +
                                      std::to_string(all.size()));
  std::copy(all.begin(), all.end(), to.begin());
  return {};
}

result<slot_destination> destination_of(const troupe_destination* said) {
  slot_destination to;
  if (said == nullptr)
    return to;
  for (const auto& put : {put_text(to.place, said->place, "place"),
                          put_text(to.directory, said->directory, "directory"),
                          put_text(to.file, said->file, "file")})
    if (!put)
      return tl::make_unexpected(put.error());
  if (said->shards == 0 || said->shard >= said->shards)
    return failure(errc::invalid, "a destination is one shard of at least one");
  to.framework = said->framework;
  to.shard = said->shard;
  to.shards = said->shards;
  to.save_within_ms = said->save_within_ms;
  to.keep_latest = said->keep_latest;
  to.keep_every = said->keep_every;
  to.resumed = said->resumed;
  to.resumed_after = said->resumed_after;
  return to;
}

slot_snapshot snapshot_of(const troupe_image& said) {
  return {said.step, said.generation, said.save, said.rank, said.world_size, said.bytes};
}

/// What a caller's arrays say of files and their parts.
snapshot_layout::contents shape_of(const troupe_file* files, size_t file_count,
                                   const troupe_part* parts, size_t part_count,
                                   const uint64_t* storage_bytes, size_t storage_count) {
  snapshot_layout::contents shape;
  for (size_t i = 0; i < file_count; ++i)
    shape.files.push_back({files[i].name, files[i].parts});
  for (size_t i = 0; i < part_count; ++i)
    shape.parts.push_back({parts[i].archive != 0, parts[i].head_bytes, parts[i].storages});
  shape.storages.assign(storage_bytes, storage_bytes + storage_count);
  return shape;
}

void tell_places(const snapshot_layout& layout, troupe_part* parts, size_t part_count) {
  for (size_t i = 0; i < part_count; ++i) {
    parts[i].in_file = layout.part_in_file(i);
    parts[i].bytes = layout.part_bytes(i);
  }
}

result<const snapshot_layout*> save(troupe_arena& arena, const troupe_image& what,
                                    const troupe_destination* to, int persist,
                                    const process_arena::state_parts& parts, troupe_left* left) {
  const auto where = destination_of(to);
  if (!where)
    return tl::make_unexpected(where.error());
  process_arena::places_left found;
  auto saved = arena.own->save({snapshot_of(what), *where, persist != 0}, parts,
                               left != nullptr ? &found : nullptr);
  if (!saved || left == nullptr)
    return saved;
  std::copy(found.places.begin(), found.places.end(), left->places);
  left->pinned_end = found.pinned_end;
  return saved;
}

/// Bytes of the lines, with a 0.
result<int> tell_files(const result<file_list>& list, char* lines, size_t room) {
  return list.map([&](const file_list& known) {
    std::string text;
    for (const auto& f : known.files)
      text += fmt::format("{}\t{}\t{}\t{}\n", f.begin, f.bytes, f.crc32, f.name);
    if (text.size() < room)
      tell(text, lines, room);
    return static_cast<int>(text.size() + 1);
  });
}

} // namespace

static_assert(TROUPE_LIST_NAME_BYTES == 32);

int troupe_save(troupe_arena* arena, const troupe_image* what, const troupe_destination* to,
                int persist, const void* pickle, uint64_t pickle_bytes, const void* const* storages,
                const uint64_t* storage_bytes, size_t storage_count, troupe_left* left, char* why,
                size_t why_bytes) {
  return answer(why, why_bytes, [&]() -> result<void> {
    process_arena::state_parts parts;
    parts.shape.parts.push_back({true, pickle_bytes, storage_count});
    parts.heads.push_back({static_cast<const char*>(pickle), pickle_bytes});
    parts.storages = bytes_of(storages, storage_bytes, storage_count);
    parts.shape.storages.assign(storage_bytes, storage_bytes + storage_count);
    return save(*arena, *what, to, persist, parts, left).map([](const snapshot_layout*) {});
  });
}

int troupe_save_files(troupe_arena* arena, const troupe_image* what, const troupe_destination* to,
                      int persist, const troupe_file* files, size_t file_count, troupe_part* parts,
                      size_t part_count, const void* const* storages, const uint64_t* storage_bytes,
                      size_t storage_count, uint64_t last_file_room, troupe_left* left, char* why,
                      size_t why_bytes) {
  return answer(why, why_bytes, [&]() -> result<void> {
    process_arena::state_parts all;
    all.shape = shape_of(files, file_count, parts, part_count, storage_bytes, storage_count);
    all.shape.last_file_room = last_file_room;
    all.shape.last_file_name = limits::storage_name_max;
    for (size_t i = 0; i < part_count; ++i)
      all.heads.push_back({static_cast<const char*>(parts[i].head), parts[i].head_bytes});
    all.storages = bytes_of(storages, storage_bytes, storage_count);
    return save(*arena, *what, to, persist, all, left).map([&](const snapshot_layout* layout) {
      tell_places(*layout, parts, part_count);
    });
  });
}

int troupe_lay_out(const troupe_file* files, size_t file_count, troupe_part* parts,
                   size_t part_count, const uint64_t* storage_bytes, size_t storage_count,
                   char* why, size_t why_bytes) {
  return answer(why, why_bytes, [&] {
    return snapshot_layout::of(
               shape_of(files, file_count, parts, part_count, storage_bytes, storage_count))
        .map([&](const snapshot_layout& layout) { tell_places(layout, parts, part_count); });
  });
}

int troupe_last_file(troupe_arena* arena, const char* name, const void* content, uint64_t bytes,
                     char* why, size_t why_bytes) {
  return answer(why, why_bytes, [&] {
    return arena->own->last_file(name, {static_cast<const char*>(content), bytes});
  });
}

void troupe_no_last_file(troupe_arena* arena, const char* why_not) {
  arena->own->no_last_file(why_not);
}

void troupe_list_name(uint32_t shard, char* name) {
  tell(list_name(shard), name, TROUPE_LIST_NAME_BYTES);
}

int troupe_files(const void* image, uint64_t bytes, char* lines, size_t room, char* why,
                 size_t why_bytes) {
  return number(why, why_bytes, [&]() -> result<int> {
    const std::string_view snapshot(static_cast<const char*>(image), bytes);
    return has_file_list(snapshot) ? tell_files(list_in(snapshot), lines, room)
                                   : tell_files(file_list{}, lines, room);
  });
}

int troupe_listed(const void* list, uint64_t bytes, char* lines, size_t room, char* why,
                  size_t why_bytes) {
  return number(why, why_bytes, [&] {
    return tell_files(list_of({static_cast<const char*>(list), bytes}), lines, room);
  });
}

void troupe_filled(troupe_arena* arena, const char* failed) {
  arena->own->filled(failed == nullptr ? result<void>{} : failure(errc::refused, failed));
}

int troupe_begin(troupe_arena* arena, uint64_t bytes, troupe_image* made, void** memory, char* why,
                 size_t why_bytes) {
  return answer(why, why_bytes, [&]() -> result<void> {
    const auto slot = arena->own->begin(bytes);
    if (!slot)
      return tl::make_unexpected(slot.error());
    made->bytes = bytes;
    made->slot = *slot;
    made->descriptor = arena->own->descriptor(*slot);
    *memory = arena->own->memory(*slot);
    return {};
  });
}

int troupe_finish(troupe_arena* arena, const troupe_image* made, const troupe_destination* to,
                  char* why, size_t why_bytes) {
  return answer(why, why_bytes, [&]() -> result<void> {
    const auto where = destination_of(to);
    if (!where)
      return tl::make_unexpected(where.error());
    return arena->own->finish(made->slot, {snapshot_of(*made), *where, false});
  });
}

void troupe_abandon(troupe_arena* arena, uint64_t slot) {
  arena->own->abandon(slot);
}

int troupe_saved(troupe_arena* arena, char* why, size_t why_bytes) {
  return answer(why, why_bytes, [&] { return arena->own->saved(); });
}
