#include "ckpt/catalog/step_catalog.hpp"

#include "runtime/base/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace troupe::ckpt {

namespace {

constexpr std::string_view markers = ".troupe/steps";

std::string marker_of(std::uint64_t step) {
  return fmt::format("{}/{}", markers, step);
}

std::string manifest_in(const std::string& directory) {
  return fmt::format("{}/{}", directory, manifest_name);
}

/// The step whose marker has this name; none for names of others, also not for "007".
std::optional<std::uint64_t> step_of_marker(const std::string& name) {
  std::uint64_t step = 0;
  const char* begin = name.data() + markers.size() + 1;
  const char* end = name.data() + name.size();
  const auto [last, wrong] = std::from_chars(begin, end, step);
  if (wrong != std::errc() || last != end || marker_of(step) != name)
    return std::nullopt;
  return step;
}

result<void> check_directory(const std::string& directory) {
  if (auto valid = ports::valid_name(directory); !valid)
    return valid;
  if (directory.substr(0, directory.find('/')) == markers.substr(0, markers.find('/')))
    return failure(errc::invalid, fmt::format("'{}' cannot be a step's directory", directory));
  return {};
}

/// Removing one would remove the other.
bool overlap(const std::string& a, const std::string& b) {
  const auto& shorter = a.size() < b.size() ? a : b;
  const auto& longer = a.size() < b.size() ? b : a;
  return longer.compare(0, shorter.size(), shorter) == 0 &&
         (longer.size() == shorter.size() || longer[shorter.size()] == '/');
}

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

/// An error only if nothing can be said about the step now.
result<void> step_catalog::read_manifest(found_step& found) {
  const auto name = manifest_in(found.directory);
  const auto text = storage_->get_small(name, limits::manifest_bytes_max);
  if (!text) {
    const auto listed = storage_->list(found.directory);
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

/// Cheap enough for one step, not for all: a list of its directory.
void step_catalog::check_sizes(found_step& found) {
  const auto listed = storage_->list(found.directory);
  if (!listed) {
    not_complete(found, step_state::damaged, listed.error().what);
    return;
  }
  std::map<std::string, std::uint64_t> sizes;
  for (const auto& file : *listed)
    sizes[file.name] = file.bytes;
  for (const auto& s : found.says.shards) {
    if (!expects_here(s))
      continue;
    const auto name = found.directory + "/" + s.name;
    const auto there = sizes.find(name);
    if (there != sizes.end() && there->second == s.file.bytes)
      continue;
    auto why = there == sizes.end() ? fmt::format("'{}' is missing", name)
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
  const auto name = from.directory + "/" + which.name;
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
  for (const auto& [other, found] : steps_)
    if (other != step && overlap(found.directory, directory))
      return failure(errc::refused, fmt::format("step {} cannot be in '{}': step {} is in '{}'",
                                                step, directory, other, found.directory));
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
    if (auto removed = storage_->remove(manifest_in(directory)); !removed)
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

void step_catalog::give_up(std::uint64_t step) {
  const auto known = steps_.find(step);
  if (known != steps_.end() && known->second.state == step_state::writing)
    not_complete(known->second, step_state::incomplete, "it was given up");
}

result<void> step_catalog::point(const std::vector<tracker>& trackers) {
  const auto* named = newest();
  // Who wrote it may have ended before it was durable, and it must be before anybody relies on it.
  if (named != nullptr && found_newest_ == named->step)
    if (auto again = storage_->replace(manifest_in(named->directory), to_text(named->says)); !again)
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
/// the newest, of two with one sequence the higher.
std::uint64_t step_catalog::sequence_for(const found_step& entry) const {
  if (entry.state == step_state::complete)
    return entry.says.sequence;
  const auto* ahead = newest();
  const bool overtaken =
      ahead != nullptr && ahead->says.sequence > entry.begun_after && ahead->step > entry.step;
  return overtaken ? ahead->says.sequence : next_sequence();
}

/// A step that is complete already, by this very manifest, is left as it is.
result<void> step_catalog::complete(found_step& entry, manifest m) {
  if (m.sequence == 0)
    m.sequence = sequence_for(entry);
  const auto text = to_text(m);
  if (entry.state == step_state::complete) {
    if (to_text(entry.says) == text)
      return {};
    return failure(errc::refused, fmt::format("step {} is complete already, with other shards; "
                                              "begin it again to replace it",
                                              m.step));
  }
  last_sequence_ = std::max(last_sequence_, m.sequence);
  if (auto written = storage_->replace(manifest_in(entry.directory), text); !written)
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
  if (auto removed = storage_->remove(manifest_in(going.directory)); !removed)
    return removed;
  not_complete(going, step_state::incomplete, "it is being removed");
  if (auto removed = storage_->remove(going.directory); !removed)
    return removed;
  if (auto removed = storage_->remove(marker_of(step)); !removed)
    return removed;
  steps_.erase(step);
  return {};
}

} // namespace troupe::ckpt
