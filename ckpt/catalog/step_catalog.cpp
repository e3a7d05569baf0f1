#include "ckpt/catalog/step_catalog.hpp"

#include "ckpt/limits.hpp"
#include "runtime/base/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

// Reading. What changes a place is in step_catalog_writing.cpp; steps without markers are in
// step_catalog_unmarked.cpp.
namespace troupe::ckpt {

namespace {

/// Each further look needs another process that has completed or removed a step meanwhile.
constexpr int looks_max = 100;

void not_complete(found_step& found, step_state state, std::string why) {
  found.state = state;
  found.says = {};
  found.why = std::move(why);
}

/// What passes by itself, unlike what lies there in a way that cannot be read.
bool passes(const error& e) {
  return e.code != errc::absent && e.code != errc::invalid && e.code != errc::refused;
}

bool older(const found_step* a, const found_step* b) {
  return std::make_tuple(a->says.id(), a->step) < std::make_tuple(b->says.id(), b->step);
}

} // namespace

result<step_catalog> step_catalog::open(ports::storage& storage, node_name only_of) {
  step_catalog catalog(storage, std::move(only_of));
  if (auto looked = catalog.look_around(); !looked)
    return tl::make_unexpected(std::move(looked.error()));
  if (const auto* found = catalog.newest())
    catalog.found_newest_ = found->step;
  return catalog;
}

result<step_catalog> step_catalog::open_one(ports::storage& storage, std::uint64_t step) {
  step_catalog catalog(storage, expects_no_files);
  if (auto looked = catalog.look_again(step); !looked)
    return tl::make_unexpected(std::move(looked.error()));
  return catalog;
}

/// Other processes complete steps and remove others between the list of markers and the reading of
/// each: then a step that was complete is gone when it is read, and the one that replaced it was
/// not complete yet, or not in the list. So what was seen counts if nothing in it has changed
/// meanwhile; and that no step is complete, or there at all, only if two looks have seen the same:
/// a marker that goes while a directory is listed leaves a list without any.
result<void> step_catalog::look_around() {
  std::optional<std::vector<std::tuple<std::uint64_t, save_id, step_state>>> before;
  for (int looks = 0; looks < looks_max; ++looks) {
    const auto stood_still = look_once();
    if (!stood_still)
      return tl::make_unexpected(stood_still.error());
    if (*stood_still && newest() != nullptr)
      return {};
    std::vector<std::tuple<std::uint64_t, save_id, step_state>> now;
    for (const auto& [step, found] : steps_)
      now.emplace_back(step, found.begun_by, found.state);
    if (*stood_still && now == before)
      return {};
    before = std::move(now);
  }
  return failure(errc::unavailable,
                 fmt::format("steps were completed and removed {} times while they were read; try "
                             "again later",
                             looks_max));
}

/// False if a step has changed since it was listed or read.
result<bool> step_catalog::look_once() {
  const auto listed = storage_->list(std::string(markers));
  if (!listed)
    return tl::make_unexpected(listed.error());
  if (listed->size() > limits::steps_kept_max)
    return failure(errc::overloaded,
                   fmt::format("more than {} steps are kept here", limits::steps_kept_max));
  std::set<std::uint64_t> there;
  for (const auto& marker : *listed)
    if (const auto step = step_of_marker(marker.name))
      there.insert(*step);
  for (auto at = steps_.begin(); at != steps_.end();)
    at = at->second.marked && there.count(at->first) == 0 ? steps_.erase(at) : std::next(at);
  bool stood_still = true;
  for (const auto step : there) {
    const auto* known = find(step);
    if (known != nullptr && known->is_complete() && known->marked)
      continue;
    if (auto looked = look_again(step); !looked)
      return tl::make_unexpected(std::move(looked.error()));
    stood_still = stood_still && find(step) != nullptr;
  }
  // One that has come without a marker may have got it since these were listed.
  const auto same = look_at_unmarked();
  if (!same)
    return same;
  stood_still = stood_still && *same;
  const auto sound = check_newest();
  return sound ? result<bool>(stood_still && *sound) : sound;
}

/// One that is gone is no error: another committer has removed it.
result<void> step_catalog::look_again(std::uint64_t step) {
  const auto name = marker_of(step);
  const auto text = storage_->get_small(name, limits::storage_name_max + 64);
  if (!text && text.error().code == errc::absent) {
    const auto known = steps_.find(step);
    if (known != steps_.end() && !known->second.marked)
      read_manifest(known->second);
    if (known != steps_.end() && (known->second.marked || !known->second.is_complete()))
      steps_.erase(known);
    return {};
  }
  // One that will not be readable by itself must not hide all other steps.
  if (!text && passes(text.error()))
    return tl::make_unexpected(text.error());
  auto& found = steps_[step] = {};
  found.step = step;
  found.marked = true;
  if (!text) {
    not_complete(found, step_state::damaged, text.error().what);
    return {};
  }
  const auto marker = marker_in(*text).and_then(
      [](const step_marker& m) { return check_directory(m.directory).map([&m] { return m; }); });
  if (!marker) {
    not_complete(found, step_state::damaged,
                 fmt::format("its marker '{}': {}", name, marker.error().what));
    return {};
  }
  found.directory = marker->directory;
  found.begun_by = marker->begun_by;
  read_manifest(found);
  return {};
}

void step_catalog::read_manifest(found_step& found) {
  found.is_no_manifest = false;
  const auto name = manifest_of_step(found.step, found.directory);
  const auto text = storage_->get_small(name, limits::manifest_bytes_max);
  if (!text) {
    if (text.error().code == errc::absent)
      return not_complete(found, step_state::incomplete, "it has no manifest");
    return not_complete(found, passes(text.error()) ? step_state::unreadable : step_state::damaged,
                        text.error().what);
  }
  auto read = manifest_of(*text);
  found.is_no_manifest = !read && read.error().code == errc::invalid;
  if (!read)
    return not_complete(found, step_state::damaged,
                        fmt::format("'{}': {}", name, read.error().what));
  if (read->step != found.step)
    return not_complete(found, step_state::damaged,
                        fmt::format("'{}' is of step {}", name, read->step));
  if (read->id() < found.begun_by)
    return not_complete(found, step_state::incomplete, "a newer save has begun it again");
  found.state = step_state::complete;
  found.says = std::move(*read);
  found.why.clear();
}

/// What is there of a step's files. In the place itself only these are looked for, since all the
/// rest there is other steps' or no step's.
result<std::map<std::string, std::uint64_t>> step_catalog::sizes_of(const found_step& found,
                                                                    const manifest& m) {
  std::vector<std::string> where;
  if (found.directory != in_place)
    where.push_back(found.directory);
  else
    for (const auto& s : m.shards)
      if (expects_here(s))
        where.push_back(s.name);
  std::map<std::string, std::uint64_t> sizes;
  for (const auto& name : where) {
    const auto listed = storage_->list(name);
    if (!listed)
      return tl::make_unexpected(listed.error());
    for (const auto& file : *listed)
      sizes[file.name] = file.bytes;
  }
  return sizes;
}

/// Cheap enough for one step, not for all: it looks at each of its files.
result<void> step_catalog::check_sizes(const found_step& found, const manifest& m) {
  const auto sizes = sizes_of(found, m);
  if (!sizes)
    return tl::make_unexpected(sizes.error());
  for (const auto& s : m.shards) {
    if (!expects_here(s))
      continue;
    const auto name = file_in(found.directory, s.name);
    const auto there = sizes->find(name);
    if (there == sizes->end())
      return failure(errc::invalid, fmt::format("'{}' is missing", name));
    if (there->second != s.file.bytes)
      return failure(errc::invalid, fmt::format("'{}' has {} bytes, its manifest says {}", name,
                                                there->second, s.file.bytes));
  }
  return {};
}

/// Takes the newest steps whose files are not those of their manifests for damaged, or unreadable
/// if that cannot be told. False if one of them is only being removed, or begun again: its
/// manifest, which goes first, is another by then.
result<bool> step_catalog::check_newest() {
  while (const found_step* candidate = newest()) {
    const auto step = candidate->step;
    const auto id = candidate->says.id();
    const auto sound = check_sizes(*candidate, candidate->says);
    if (sound)
      return true;
    const bool unmarked = !candidate->marked;
    if (auto looked = look_again(step); !looked)
      return tl::make_unexpected(std::move(looked.error()));
    const auto* now = find(step);
    if (now == nullptr || !now->is_complete() || now->says.id() != id)
      return false;
    auto& damaged = steps_.at(step);
    damaged.begun_by = unmarked ? id : damaged.begun_by;
    not_complete(damaged, passes(sound.error()) ? step_state::unreadable : step_state::damaged,
                 sound.error().what);
  }
  return true;
}

const found_step* step_catalog::newest() const {
  const found_step* best = nullptr;
  for (const auto& [step, found] : steps_)
    if (found.is_complete() && (best == nullptr || older(best, &found)))
      best = &found;
  return best;
}

const found_step* step_catalog::find(std::uint64_t step) const {
  const auto found = steps_.find(step);
  return found == steps_.end() ? nullptr : &found->second;
}

std::vector<const found_step*> step_catalog::complete_newest_first() const {
  std::vector<const found_step*> all;
  std::set<std::pair<save_id, std::uint64_t>> states;
  for (const auto& [step, found] : steps_)
    if (found.is_complete() && states.emplace(found.says.id(), step).second)
      all.push_back(&found);
  for (const auto& copy : copies_)
    if (states.emplace(copy.says.id(), copy.step).second)
      all.push_back(&copy);
  std::sort(all.begin(), all.end(), [](const auto* a, const auto* b) { return older(b, a); });
  return all;
}

} // namespace troupe::ckpt
