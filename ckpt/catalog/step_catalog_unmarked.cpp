#include "ckpt/catalog/shard_files.hpp"
#include "ckpt/catalog/step_catalog.hpp"
#include "ckpt/catalog/step_names.hpp"
#include "ckpt/limits.hpp"
#include "runtime/base/generations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

// Steps that are known by their manifests alone: `.troupe` was left out by what copied the place,
// or a person has copied a step.
namespace troupe::ckpt {

namespace {

constexpr std::string_view own_folder = ".troupe";

bool may_pass(const error& e) {
  return e.code != errc::absent && e.code != errc::invalid && e.code != errc::refused;
}

} // namespace

/// Only what lies directly in the place: that is where steps are written. A directory that was
/// looked into once and has no manifest is not looked into again by this object, as a place may
/// have thousands of them on a server that is far away.
result<bool> step_catalog::look_at_unmarked() {
  const auto entries = storage_->entries();
  if (!entries && may_pass(entries.error()))
    return tl::make_unexpected(entries.error());
  if (!entries)
    return true; // This user may not list it, and sees what has markers.
  std::set<std::string> there, known;
  for (const auto& entry : *entries)
    there.insert(entry.name);
  for (auto at = steps_.begin(); at != steps_.end();) {
    const auto& found = at->second;
    const auto name = found.directory == in_place ? manifest_of_step(found.step, found.directory)
                                                  : found.directory;
    const bool gone = !found.marked && there.count(name) == 0;
    if (!gone)
      known.insert(name.substr(0, name.find('/')));
    at = gone ? steps_.erase(at) : std::next(at);
  }
  const auto before = steps_.size() + copies_.size();
  copies_.clear();
  odd_.clear();
  for (const auto& entry : *entries) {
    if (known.count(entry.name) != 0 || entry.name == own_folder)
      continue;
    if (!entry.is_file)
      look_at_directory(entry.name);
    else if (const auto step = step_of_manifest(entry.name))
      look_at_manifest_in_place(*step);
  }
  return steps_.size() + copies_.size() == before;
}

void step_catalog::look_at_directory(const std::string& directory) {
  if (without_manifest_.count(directory) != 0 || !check_directory(directory))
    return;
  const auto name = fmt::format("{}/{}", directory, manifest_name);
  const auto text = storage_->get_small(name, limits::manifest_bytes_max);
  if (!text && (text.error().code == errc::absent || text.error().code == errc::refused)) {
    without_manifest_.insert(directory);
    return;
  }
  if (!text) {
    odd_.push_back({directory,
                    may_pass(text.error()) ? step_state::unreadable : step_state::damaged,
                    text.error().what});
    return;
  }
  auto read = manifest_of(*text);
  if (!read) {
    odd_.push_back(
        {directory, step_state::damaged, fmt::format("'{}': {}", name, read.error().what)});
    return;
  }
  found_step found;
  found.step = read->step;
  found.directory = directory;
  found.begun_by = read->id();
  found.state = step_state::complete;
  found.says = std::move(*read);
  take_unmarked(std::move(found));
}

void step_catalog::look_at_manifest_in_place(std::uint64_t step) {
  found_step found;
  found.step = step;
  found.directory = std::string(in_place);
  read_manifest(found);
  if (found.is_complete()) {
    found.begun_by = found.says.id();
    take_unmarked(std::move(found));
  } else if (found.state != step_state::incomplete) {
    odd_.push_back({manifest_of_step(step, found.directory), found.state, found.why});
  }
}

/// One that was written where it is takes its number, unless that is another's; any other is a
/// copy.
void step_catalog::take_unmarked(found_step found) {
  const auto known = steps_.find(found.step);
  const bool as_written = found.says.directory == found.directory;
  const bool free = known == steps_.end() || known->second.directory.empty(); // A damaged marker.
  if (as_written && free)
    steps_[found.step] = std::move(found);
  else if (copies_.size() < limits::steps_kept_max)
    copies_.push_back(std::move(found));
}

/// What this user may not write stays without one: it can be loaded, and is not written over.
result<void> step_catalog::restore_markers() {
  for (auto& [step, found] : steps_)
    if (!found.marked && found.is_complete())
      if (auto restored = restore_marker(found);
          !restored && restored.error().code != errc::refused)
        return restored;
  return {};
}

/// Claims first: with a marker and without them its files would be no step's.
result<void> step_catalog::restore_marker(found_step& found) {
  if (found.directory == in_place)
    for (const auto& s : found.says.shards)
      if (check_file_in_place(s.name))
        if (auto claimed = storage_->replace(claim_of(found.step, s.name), ""); !claimed)
          return claimed;
  if (auto marked =
          storage_->replace(marker_of(found.step), to_text({found.directory, found.begun_by}));
      !marked)
    return marked;
  found.marked = true;
  return {};
}

// ---- lines -------------------------------------------------------------------------------------

/// On record it is once the run has begun to save.
result<line> step_catalog::line_for(generation by) {
  const auto own = term_of(by);
  if (const auto known = lines_.find(own); known != lines_.end())
    return known->second;
  auto found = line_of(*storage_, own);
  if (found && !found->from.empty())
    lines_[own] = *found;
  return found;
}

result<bool> step_catalog::is_of_line(const found_step& known, generation by) {
  const auto made_by = known.is_complete() ? known.says.made_by : known.begun_by.made_by;
  return line_for(by).map([made_by](const line& l) { return l.touches(made_by); });
}

/// Asked rarely, and of a record that a later load may have added to.
result<bool> step_catalog::is_given_up(const found_step& known, generation by) {
  const auto of = line_of(*storage_, term_of(by));
  if (!of)
    return tl::make_unexpected(of.error());
  const auto has = [](const std::vector<save_id>& ids, const save_id& id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  if (known.is_left())
    return has(of->left, known.begun_by)
               ? has_other_manifest(known).map([](bool other) { return !other; })
               : result<bool>(false);
  auto now = known; // as its manifest says, whatever its files are
  read_manifest(now);
  if (!now.is_complete())
    return false;
  if (has(of->damaged, now.says.id()))
    return true;
  return has(of->lacking, now.says.id()) ? lacks_files(now) : result<bool>(false);
}

/// Other versions of Troupe gave manifests other names.
result<bool> step_catalog::has_other_manifest(const found_step& known) {
  const auto there = storage_->list(folder_of(known.step, known.directory));
  if (!there)
    return tl::make_unexpected(there.error());
  return std::any_of(there->begin(), there->end(), [&known](const ports::stored_file& f) {
    return f.name.find("troupe-manifest") != f.name.npos &&
           f.name != manifest_of_step(known.step, known.directory);
  });
}

/// Of what is expected here, or lies here.
result<bool> step_catalog::lacks_files(const found_step& complete) {
  for (const auto& s : complete.says.shards) {
    const auto sound = check_shard_sizes(*storage_, complete, s);
    if (sound)
      continue;
    if (sound.error().code == errc::invalid ||
        (sound.error().code == errc::absent && expects_here(s)))
      return true;
    if (sound.error().code != errc::absent)
      return tl::make_unexpected(sound.error());
  }
  return false;
}

} // namespace troupe::ckpt
