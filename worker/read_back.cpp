#include "worker/read_back.hpp"

#include "ckpt/catalog/step_catalog.hpp"
#include "runtime/os/storage/posix_storage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace troupe::ckpt {

namespace {

/// A node that writes no files: what is missing shows when the file is read.
constexpr auto no_node = "\n";

tl::unexpected<error> at(const std::string& place, const error& e) {
  return failure(e.code, fmt::format("'{}': {}", place, e.what));
}

} // namespace

result<std::vector<std::uint64_t>> complete_steps(const std::string& place) {
  os::posix_storage storage(place);
  const auto known = step_catalog::open(storage, no_node);
  if (!known)
    return at(place, known.error());
  std::vector<const found_step*> complete;
  for (const auto& [step, found] : known->steps())
    if (found.state == step_state::complete)
      complete.push_back(&found);
  std::sort(complete.begin(), complete.end(), [](const auto* a, const auto* b) {
    return std::tie(a->says.sequence, a->step) > std::tie(b->says.sequence, b->step);
  });
  std::vector<std::uint64_t> steps;
  for (const auto* found : complete)
    steps.push_back(found->step);
  return steps;
}

result<std::size_t> read_back(process_arena& arena, const std::string& place, std::uint64_t step,
                              const std::string& file, slot_snapshot what) {
  os::posix_storage storage(place);
  const auto known = step_catalog::open(storage, no_node);
  if (!known)
    return at(place, known.error());
  const auto found = known->steps().find(step);
  if (found == known->steps().end() || found->second.state != step_state::complete)
    return failure(errc::invalid,
                   fmt::format("'{}': step {} is not complete{}", place, step,
                               found == known->steps().end() ? "" : ": " + found->second.why));
  const auto& says = found->second.says;
  const auto one = std::find_if(says.shards.begin(), says.shards.end(),
                                [&](const shard& s) { return s.name == file; });
  if (one == says.shards.end())
    return failure(errc::invalid,
                   fmt::format("'{}': step {} has no file {}: a world of {} saved it", place, step,
                               file, says.world_size));
  what.step = step;
  what.bytes = one->file.bytes;
  const auto slot = arena.begin(what.bytes);
  if (!slot)
    return slot;
  const auto read = load_shard(storage, found->second, *one,
                               {reinterpret_cast<std::byte*>(arena.memory(*slot)), what.bytes},
                               ports::never_stops);
  if (!read) {
    arena.abandon(*slot);
    return at(place, read.error());
  }
  if (const auto finished = arena.finish(*slot, {what, {}, false}); !finished)
    return tl::make_unexpected(finished.error());
  return *slot;
}

} // namespace troupe::ckpt
