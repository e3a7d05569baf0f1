#include "ckpt/catalog/step_catalog.hpp"

#include "ckpt/catalog/step_names.hpp"
#include "ckpt/limits.hpp"
#include "runtime/base/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::ckpt {

namespace {

void not_complete(found_step& found, step_state state, std::string why) {
  found.state = state;
  found.says = {};
  found.why = std::move(why);
}

} // namespace

// ---- reading -----------------------------------------------------------------------------------

result<step_catalog> step_catalog::open(ports::storage& storage, node_name only_of) {
  step_catalog catalog(storage, std::move(only_of));
  const auto listed = storage.list(std::string(markers));
  if (!listed)
    return tl::make_unexpected(listed.error());
  if (listed->size() > limits::steps_kept_max)
    return failure(errc::overloaded,
                   fmt::format("more than {} steps are kept here", limits::steps_kept_max));
  for (const auto& marker : *listed)
    if (const auto step = step_of_marker(marker.name))
      if (auto read = catalog.read_step(*step); !read)
        return tl::make_unexpected(std::move(read.error()));
  for (auto& [step, found] : catalog.steps_)
    found.begun_after = catalog.last_sequence_;
  catalog.check_newest();
  if (const auto* found = catalog.newest())
    catalog.found_newest_ = found->step;
  return catalog;
}

result<void> step_catalog::read_step(std::uint64_t step) {
  found_step found;
  found.step = step;
  auto directory = storage_->get_small(marker_of(step), limits::storage_name_max);
  if (!directory)
    return tl::make_unexpected(std::move(directory.error()));
  found.directory = std::move(*directory);
  if (auto sound = check_directory(found.directory); !sound)
    not_complete(found, step_state::damaged, "its marker: " + sound.error().what);
  else if (auto read = read_manifest(found); !read)
    return read;
  steps_[step] = std::move(found);
  return {};
}

result<void> step_catalog::look_again(std::uint64_t step) {
  const auto known = steps_.find(step);
  if (known == steps_.end()) {
    const auto marker = storage_->get_small(marker_of(step), limits::storage_name_max);
    if (marker || marker.error().code != errc::invalid)
      return read_step(step);
    return {};
  }
  auto seen = known->second;
  if (auto read = read_manifest(seen); !read)
    return read;
  if (seen.state == step_state::complete)
    known->second = std::move(seen);
  return {};
}

result<void> step_catalog::look_around() {
  const auto listed = storage_->list(std::string(markers));
  if (!listed)
    return tl::make_unexpected(listed.error());
  for (const auto& marker : *listed) {
    const auto step = step_of_marker(marker.name);
    if (!step)
      continue;
    const auto known = steps_.find(*step);
    const bool is_new = known == steps_.end();
    if (!is_new && known->second.state == step_state::complete)
      continue;
    if (auto looked = look_again(*step); !looked)
      return looked;
    // One that was begun elsewhere meanwhile is not abandoned, as it would look to retention.
    const auto seen = steps_.find(*step);
    if (is_new && seen != steps_.end() && seen->second.state != step_state::complete)
      steps_.erase(seen);
  }
  return {};
}

/// An error only if nothing can be said about the step now.
result<void> step_catalog::read_manifest(found_step& found) {
  const auto folder = folder_of(found.step, found.directory);
  const auto name = manifest_in(folder);
  const auto text = storage_->get_small(name, limits::manifest_bytes_max);
  if (!text) {
    const auto listed = storage_->list(folder);
    if (!listed)
      return tl::make_unexpected(listed.error());
    const bool there = std::any_of(listed->begin(), listed->end(),
                                   [&name](const auto& file) { return file.name == name; });
    if (there)
      not_complete(found, step_state::damaged, text.error().what);
    else
      not_complete(found, step_state::incomplete, "it has no manifest");
    return {};
  }
  auto read = manifest_of(*text);
  if (!read) {
    not_complete(found, step_state::damaged, fmt::format("'{}': {}", name, read.error().what));
  } else if (read->step != found.step) {
    not_complete(found, step_state::damaged, fmt::format("'{}' is of step {}", name, read->step));
  } else {
    found.state = step_state::complete;
    found.says = std::move(*read);
    last_sequence_ = std::max(last_sequence_, found.says.sequence);
  }
  return {};
}

/// What is there of a step's files. In the place itself only these are looked for, since all the
/// rest there is other steps' or no step's.
result<std::map<std::string, std::uint64_t>> step_catalog::sizes_of(const found_step& found) {
  std::vector<std::string> where;
  if (found.directory != in_place)
    where.push_back(found.directory);
  else
    for (const auto& s : found.says.shards)
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
void step_catalog::check_sizes(found_step& found) {
  const auto sizes = sizes_of(found);
  if (!sizes) {
    not_complete(found, step_state::damaged, sizes.error().what);
    return;
  }
  for (const auto& s : found.says.shards) {
    if (!expects_here(s))
      continue;
    const auto name = file_in(found.directory, s.name);
    const auto there = sizes->find(name);
    if (there != sizes->end() && there->second == s.file.bytes)
      continue;
    auto why = there == sizes->end() ? fmt::format("'{}' is missing", name)
                                     : fmt::format("'{}' has {} bytes, its manifest says {}", name,
                                                   there->second, s.file.bytes);
    not_complete(found, step_state::damaged, std::move(why));
    return;
  }
}

void step_catalog::check_newest() {
  while (const found_step* candidate = newest()) {
    check_sizes(steps_.at(candidate->step));
    if (newest() == candidate)
      return;
  }
}

const found_step* step_catalog::newest() const {
  const found_step* best = nullptr;
  for (const auto& [step, found] : steps_)
    if (found.state == step_state::complete &&
        (best == nullptr || found.says.sequence > best->says.sequence ||
         (found.says.sequence == best->says.sequence && step > best->step)))
      best = &found;
  return best;
}

std::uint64_t step_catalog::next_sequence() const {
  return last_sequence_ + 1;
}

result<void> load_shard(ports::storage& storage, const found_step& from, const shard& which,
                        ports::bytes_room into, const std::atomic<bool>& stop) {
  const auto name = file_in(from.directory, which.name);
  const auto got = storage.get(name, into, stop);
  if (!got)
    return failure(got.error().code, fmt::format("step {}: {}", from.step, got.error().what));
  if (got->bytes != which.file.bytes)
    return failure(errc::invalid, fmt::format("step {}: '{}' has {} bytes, its manifest says {}",
                                              from.step, name, got->bytes, which.file.bytes));
  if (got->crc32 != which.file.crc32)
    return failure(errc::invalid,
                   fmt::format("step {}: '{}' is damaged: its checksum is {:08x}, its manifest "
                               "says {:08x}",
                               from.step, name, got->crc32, which.file.crc32));
  return {};
}

// ---- writing -----------------------------------------------------------------------------------

result<void> step_catalog::begin(std::uint64_t step, const std::string& directory) {
  if (auto sound = check_directory(directory); !sound)
    return sound;
  if (directory != in_place)
    if (auto free = check_free(step, directory); !free)
      return free;
  const auto known = steps_.find(step);
  if (known == steps_.end() && steps_.size() >= limits::steps_kept_max)
    return failure(errc::overloaded,
                   fmt::format("step {}: {} steps are kept already; let retention remove some",
                               step, steps_.size()));
  if (known != steps_.end()) {
    if (known->second.directory != directory)
      return failure(errc::refused, fmt::format("step {} is in '{}' already, not in '{}'", step,
                                                known->second.directory, directory));
    if (newest() == &known->second)
      return failure(errc::refused,
                     fmt::format("step {} is complete in '{}', and the newest that is; it stays",
                                 step, directory));
    if (known->second.state == step_state::complete && trackers_behind_)
      return failure(errc::refused,
                     fmt::format("step {} is complete, and a tracker may name it; bring the "
                                 "trackers up to date first",
                                 step));
    // Before the first of its shards is replaced: it must not look complete with other bytes.
    if (auto removed = storage_->remove(manifest_in(folder_of(step, directory))); !removed)
      return removed;
    not_complete(known->second, step_state::incomplete, "it was begun again");
  }
  if (auto marked = storage_->replace(marker_of(step), directory); !marked)
    return marked;
  auto& entry = steps_[step];
  entry = {};
  entry.step = step;
  entry.directory = directory;
  entry.state = step_state::writing;
  entry.why = "it is being written";
  entry.begun_after = last_sequence_;
  return {};
}

/// What would be replaced or removed with another step is refused. Claims are looked at anew, since
/// other nodes make and remove some.
result<void> step_catalog::check_free(std::uint64_t step, const std::string& name) {
  const auto top = name.substr(0, name.find('/'));
  for (const auto& [other, found] : steps_) {
    if (other == step)
      continue;
    if (found.directory == in_place) {
      const auto claimed = storage_->list(claim_of(other, top));
      if (!claimed)
        return tl::make_unexpected(claimed.error());
      if (!claimed->empty())
        return failure(errc::refused,
                       fmt::format("step {} cannot be in '{}': step {} is in the file '{}'; name "
                                   "files by their step",
                                   step, name, other, top));
    } else if (overlap(found.directory, name)) {
      return failure(errc::refused, fmt::format("step {} cannot be in '{}': step {} is in '{}'",
                                                step, name, other, found.directory));
    }
  }
  return {};
}

result<void> step_catalog::claim(std::uint64_t step, const std::string& file) {
  const auto known = steps_.find(step);
  if (known == steps_.end())
    return failure(errc::invalid, fmt::format("step {} was never begun here", step));
  if (known->second.directory != in_place)
    return {};
  if (auto sound = check_file_in_place(file); !sound)
    return sound;
  const auto name = claim_of(step, file);
  const auto before = storage_->list(name);
  if (!before)
    return tl::make_unexpected(before.error());
  if (before->empty()) {
    if (auto free = check_free(step, file); !free)
      return free;
    const auto there = storage_->list(file);
    if (!there)
      return tl::make_unexpected(there.error());
    if (!there->empty())
      return failure(
          errc::refused,
          fmt::format("step {} cannot be in '{}': it is there already, and no step known "
                      "here has named it; it stays",
                      step, file));
  }
  // Also if it is there: its writer may have ended before that was durable.
  return storage_->replace(name, "");
}

void step_catalog::give_up(std::uint64_t step) {
  const auto known = steps_.find(step);
  if (known != steps_.end() && known->second.state == step_state::writing)
    not_complete(known->second, step_state::incomplete, "it was given up");
}

result<void> step_catalog::point(const std::vector<tracker>& trackers) {
  const auto* named = newest();
  // Its writer may have ended before it was durable, and it must be before a tracker names it.
  if (named != nullptr && found_newest_ == named->step)
    if (auto again = storage_->replace(manifest_in(folder_of(named->step, named->directory)),
                                       to_text(named->says));
        !again)
      return again;
  found_newest_.reset();
  trackers_behind_ = true;
  for (const auto& one : trackers)
    if (auto replaced = storage_->replace(one.name, one.content); !replaced)
      return replaced;
  trackers_behind_ = false;
  return {};
}

result<committed> step_catalog::commit(manifest m, const std::vector<tracker>& trackers,
                                       retention keep) {
  if (auto sound = check(m); !sound)
    return tl::make_unexpected(std::move(sound.error()));
  const auto known = steps_.find(m.step);
  if (known == steps_.end())
    return failure(errc::invalid, fmt::format("step {} was never begun here", m.step));
  found_step& entry = known->second;
  if (auto completed = complete(entry, std::move(m)); !completed)
    return tl::make_unexpected(std::move(completed.error()));
  if (newest() == &entry)
    if (auto pointed = point(trackers); !pointed)
      return tl::make_unexpected(std::move(pointed.error()));
  committed done;
  done.sequence = entry.says.sequence;
  retain(keep, done);
  return done;
}

/// The next one, but for a step that a later one has overtaken while it was written: that one stays
/// the newest, of two with one sequence the higher. A step of an older generation overtakes none:
/// the newer one has not gone on from it.
std::uint64_t step_catalog::sequence_for(const found_step& entry, generation made_by) const {
  if (entry.state == step_state::complete)
    return entry.says.sequence;
  const auto* ahead = newest();
  const bool overtaken = ahead != nullptr && ahead->says.sequence > entry.begun_after &&
                         ahead->step > entry.step && !(ahead->says.made_by < made_by);
  return overtaken ? ahead->says.sequence : next_sequence();
}

/// A step that is complete already, by this very manifest, is left as it is.
result<void> step_catalog::complete(found_step& entry, manifest m) {
  if (m.sequence == 0)
    m.sequence = sequence_for(entry, m.made_by);
  const auto text = to_text(m);
  if (entry.state == step_state::complete) {
    if (to_text(entry.says) == text)
      return {};
    return failure(errc::refused, fmt::format("step {} is complete already, with other shards; "
                                              "begin it again to replace it",
                                              m.step));
  }
  last_sequence_ = std::max(last_sequence_, m.sequence);
  const auto name = manifest_in(folder_of(entry.step, entry.directory));
  if (auto written = storage_->replace(name, text); !written)
    return written;
  entry.state = step_state::complete;
  entry.says = std::move(m);
  entry.why.clear();
  return {};
}

void step_catalog::retain(retention keep, committed& done) {
  std::vector<step_seen> seen;
  seen.reserve(steps_.size());
  for (const auto& [step, found] : steps_)
    seen.push_back({step, found.state, found.says.sequence});
  for (const auto step : removable(seen, keep)) {
    if (auto removed = remove(step); !removed) {
      done.not_removed = std::move(removed.error());
      return;
    }
    done.removed.push_back(step);
  }
}

/// In this order a crash leaves a step that is complete, or one that the next retention removes.
result<void> step_catalog::remove(std::uint64_t step) {
  found_step& going = steps_.at(step);
  const auto folder = folder_of(step, going.directory);
  if (auto removed = storage_->remove(manifest_in(folder)); !removed)
    return removed;
  not_complete(going, step_state::incomplete, "it is being removed");
  if (going.directory == in_place)
    if (auto removed = remove_claimed(folder); !removed)
      return removed;
  if (auto removed = storage_->remove(folder); !removed)
    return removed;
  if (auto removed = storage_->remove(marker_of(step)); !removed)
    return removed;
  steps_.erase(step);
  return {};
}

/// The files of a step that is in place. Also those of which nothing is there: the process that
/// removed them may have ended before that was durable.
result<void> step_catalog::remove_claimed(const std::string& folder) {
  const auto claims = storage_->list(folder);
  if (!claims)
    return tl::make_unexpected(claims.error());
  for (const auto& claim : *claims) {
    const auto file = claim.name.substr(folder.size() + 1);
    if (!check_file_in_place(file))
      continue; // No claim of ours.
    if (auto removed = storage_->remove(file); !removed)
      return removed;
  }
  return {};
}

} // namespace troupe::ckpt
