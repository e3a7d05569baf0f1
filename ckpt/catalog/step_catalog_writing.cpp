#include "ckpt/arena/place_id.hpp"
#include "ckpt/catalog/step_catalog.hpp"
#include "ckpt/limits.hpp"
#include "runtime/base/generations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

// Everything that changes a place of storage. Another process may do the same at any moment, and
// there is no lock that every file system has: of two that begin and complete a step at once, each
// first writes and then looks at what the other has written, so at least one of them sees it.
namespace troupe::ckpt {

namespace {

std::string in_words(const save_id& id) {
  return fmt::format("save {} of {}", count_in(id.number), in_full(id.made_by));
}

tl::unexpected<error> begun_by_newer(std::uint64_t step, const save_id& newer) {
  return failure(errc::refused, fmt::format("step {} is not of this save any more: {} has begun it "
                                            "again",
                                            step, in_words(newer)));
}

/// Of a step that this writer, or another of its save, has begun.
tl::unexpected<error> removed(std::uint64_t step) {
  return failure(errc::refused, fmt::format("step {} has ended and was removed", step));
}

/// Without its directory nothing can be done about a step.
tl::unexpected<error> damaged_marker(const found_step& known) {
  return failure(errc::refused,
                 fmt::format("step {} stays as it is: {}; if its files are not needed, remove '{}'",
                             known.step, known.why, marker_of(known.step)));
}

/// It may be complete, and even the newest: nothing is done to it until that can be told.
tl::unexpected<error> cannot_tell(const found_step& known) {
  return failure(errc::unavailable,
                 fmt::format("step {} cannot be read: {}", known.step, known.why));
}

tl::unexpected<error> of_another_run(const found_step& known) {
  const auto& by = known.is_complete() ? known.says.id() : known.begun_by;
  return failure(errc::refused,
                 fmt::format("step {} is in '{}' by another run ({}), which this one has not gone "
                             "on from; it stays. Save to another directory, or move it away",
                             known.step, known.directory, in_words(by)));
}

tl::unexpected<error> newest_stays(const found_step& known) {
  return failure(errc::refused,
                 fmt::format("step {} is complete in '{}' with other contents, and is the newest "
                             "that is; it stays",
                             known.step, known.directory));
}

bool same_shards(const manifest& a, const manifest& b) {
  return std::equal(a.shards.begin(), a.shards.end(), b.shards.begin(), b.shards.end(),
                    [](const shard& x, const shard& y) {
                      return x.name == y.name && x.file == y.file && x.node == y.node;
                    });
}

} // namespace

// ---- begin -------------------------------------------------------------------------------------

result<void> step_catalog::begin(std::uint64_t step, const std::string& directory,
                                 const save_id& by, std::optional<resume_point> resumed_from) {
  if (auto sound = check_directory(directory); !sound)
    return sound;
  if (auto looked = look_again(step); !looked)
    return looked;
  const auto* known = find(step);
  if (known == nullptr) {
    if (auto own = check_own(step, directory); !own)
      return own;
    known = find(step); // Another node of the same save may have begun it meanwhile.
  }
  if (known != nullptr) {
    if (known->is_complete() && known->says.id() == by && known->directory == directory)
      return {};
    if (auto may = check_may_begin(*known, directory, by, resumed_from); !may)
      return may;
    if (auto ours = check_own_line(*known, by.made_by); !ours)
      return ours;
    if (known->begun_by == by && known->state != step_state::damaged)
      return {};
    return begin_again(found_step(*known), by, resumed_from);
  }
  if (steps_.size() >= limits::steps_kept_max)
    return failure(errc::overloaded,
                   fmt::format("step {}: {} steps are kept already; let retention remove some",
                               step, steps_.size()));
  if (auto marked = storage_->replace(marker_of(step), to_text({directory, by})); !marked)
    return marked;
  steps_[step] = {step, directory, by, step_state::incomplete, {}, "it is being written", true};
  return {};
}

bool step_catalog::is_made_anew(const found_step& known, const save_id& by,
                                std::optional<resume_point> resumed_from) const {
  return resumed_from && resumed_from->step < known.step && known.is_complete() &&
         !(save_id{by.made_by, resumed_from->after} < known.says.id()) &&
         complete_newest_first().size() > 1;
}

result<void> step_catalog::check_may_begin(const found_step& known, const std::string& directory,
                                           const save_id& by,
                                           std::optional<resume_point> resumed_from) const {
  if (known.directory.empty())
    return damaged_marker(known);
  if (known.is_unreadable())
    return cannot_tell(known);
  if (known.directory != directory)
    return failure(errc::refused, fmt::format("step {} is in '{}' already, not in '{}'", known.step,
                                              known.directory, directory));
  if (by < known.begun_by)
    return begun_by_newer(known.step, known.begun_by);
  if (!known.is_complete())
    return {};
  if (by < known.says.id())
    return begun_by_newer(known.step, known.says.id());
  if (newest() == &known)
    return is_made_anew(known, by, resumed_from) ? result<void>{} : newest_stays(known);
  if (trackers_behind_)
    return failure(errc::refused, fmt::format("step {} is complete, and a tracker may name it; "
                                              "bring the trackers up to date first",
                                              known.step));
  return {};
}

/// What a run before this one has left is its own, complete or not, unless this one stands upon it,
/// or training can go on from it no more.
result<void> step_catalog::check_own_line(const found_step& known, generation by) {
  const auto ours = is_of_line(known, by);
  if (!ours)
    return tl::make_unexpected(ours.error());
  if (*ours)
    return {};
  const auto again = is_given_up(known, by);
  if (!again)
    return tl::make_unexpected(again.error());
  if (*again)
    return {};
  if (known.state == step_state::incomplete) {
    const auto there = storage_->list(folder_of(known.step, known.directory));
    if (!there)
      return tl::make_unexpected(there.error());
    if (there->empty())
      return {};
  }
  return of_another_run(known);
}

/// A directory without a marker that holds files belongs to another program or person: what a step
/// removes one day would take them along.
result<void> step_catalog::check_own(std::uint64_t step, const std::string& directory) {
  if (directory == in_place)
    return {};
  if (auto free = check_free(step, directory); !free)
    return free;
  const auto there = storage_->list(directory);
  if (!there)
    return tl::make_unexpected(there.error());
  if (there->empty())
    return {};
  if (auto looked = look_again(step); !looked)
    return looked;
  if (find(step) != nullptr)
    return {};
  return failure(errc::refused,
                 fmt::format("step {} cannot be in '{}': it holds '{}', which no step of Troupe's "
                             "has written; it stays. Save to another directory, or move it away",
                             step, directory, there->front().name));
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

/// A commit of the save before may have come between the look and the marker. If that made it the
/// newest complete step, or it is another run's, it is so again; so it is if that cannot be told.
result<void> step_catalog::begin_again(const found_step& before, const save_id& by,
                                       std::optional<resume_point> resumed_from) {
  const auto step = before.step;
  if (auto marked = storage_->replace(marker_of(step), to_text({before.directory, by})); !marked)
    return marked;
  auto meanwhile = before;
  meanwhile.marked = true;
  read_manifest(meanwhile);
  steps_[step] = meanwhile;
  const bool became_complete = !before.is_complete() && meanwhile.is_complete();
  const auto ours = became_complete ? is_of_line(before, by.made_by) : true;
  const bool stays = became_complete && (!ours || !*ours || newest() == &steps_[step]);
  if (stays || meanwhile.is_unreadable()) {
    if (auto marked =
            storage_->replace(marker_of(step), to_text({before.directory, before.begun_by}));
        !marked)
      return marked;
    if (!ours)
      return tl::make_unexpected(ours.error());
    if (!*ours)
      return of_another_run(meanwhile);
    return check_may_begin(steps_[step], before.directory, by, resumed_from);
  }
  steps_[step] = {step, before.directory,     by,  step_state::incomplete,
                  {},   "it was begun again", true};
  return {};
}

result<void> step_catalog::claim(std::uint64_t step, const std::string& file, bool put) {
  const auto* known = find(step);
  if (known == nullptr)
    return removed(step);
  if (known->directory != in_place)
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
    if (!put && !there->empty())
      return failure(
          errc::refused,
          fmt::format("step {} cannot be in '{}': it is there already, and no step known "
                      "here has named it; it stays",
                      step, file));
  }
  // Also if it is there: its writer may have ended before that was durable.
  return storage_->replace(name, "");
}

result<void> step_catalog::check_begun(std::uint64_t step, const save_id& by) {
  if (auto looked = look_again(step); !looked)
    return looked;
  const auto* known = find(step);
  if (known == nullptr)
    return removed(step);
  auto newest = known->begun_by;
  if (known->is_complete())
    newest = std::max(newest, known->says.id());
  return by < newest ? begun_by_newer(step, newest) : result<void>{};
}

/// Without a marker the shard would be no step's: it would stay for ever, and the step could not be
/// saved again.
result<void> step_catalog::check_put(std::uint64_t step, const std::string& directory,
                                     const std::string& file, const save_id& by) {
  if (auto looked = look_again(step); !looked)
    return looked;
  const auto* known = find(step);
  const auto newer =
      known != nullptr && by < known->begun_by ? std::optional(known->begun_by) : std::nullopt;
  auto answer = [&]() -> result<void> {
    return newer ? begun_by_newer(step, *newer) : result<void>{};
  };
  if (known != nullptr) {
    if (directory != in_place)
      return answer();
    // Its claim went with the save that it belongs to, if the step was begun again since: then the
    // file would be in the way of every later save.
    const auto claims = storage_->list(claim_of(step, file));
    if (!claims)
      return tl::make_unexpected(claims.error());
    if (!claims->empty())
      return answer();
  }
  if (directory == in_place) {
    if (auto claimed = storage_->replace(claim_of(step, file), ""); !claimed)
      return claimed;
    if (auto looked = look_again(step); !looked)
      return looked;
  }
  if (find(step) == nullptr)
    if (auto marked = storage_->replace(marker_of(step), to_text({directory, by})); !marked)
      return marked;
  if (newer)
    return answer();
  return failure(errc::refused, fmt::format("step {} has ended and was removed while '{}' was "
                                            "written",
                                            step, file_in(directory, file)));
}

// ---- commit ------------------------------------------------------------------------------------

result<void> step_catalog::commit(const manifest& m, framework whose) {
  if (auto sound = check(m); !sound)
    return sound;
  if (auto looked = look_again(m.step); !looked)
    return looked;
  const auto* known = find(m.step);
  if (known == nullptr)
    return removed(m.step);
  if (auto may = check_commit(*known, m); !may)
    return may;
  if (auto ours = check_own_line(*known, m.made_by); !ours)
    return ours;
  if (!known->is_complete() || known->says.id() != m.id()) {
    auto of_line = line_for(m.made_by);
    if (!of_line)
      return tl::make_unexpected(of_line.error());
    auto says = m;
    says.directory = known->directory;
    says.line = std::move(of_line->from);
    const auto name = manifest_of_step(m.step, known->directory);
    if (auto written = storage_->replace(name, to_text(says)); !written)
      return written;
    if (auto looked = look_again(m.step); !looked)
      return looked;
    known = find(m.step);
    if (known == nullptr || !known->is_complete() || known->says.id() != m.id()) {
      return failure(
          errc::refused,
          fmt::format("step {} was begun again or removed while it was completed", m.step));
    }
  }
  if (newest() != known)
    return {};
  return point(whose).and_then([&] { return check_stays(m); });
}

/// Trackers may wait for a slow disk, and the last look at the place comes after them. What was the
/// newest has gone for a reason if a newer step is complete; else the whole place was emptied, or
/// replaced, and the step must not be called complete.
result<void> step_catalog::check_stays(const manifest& m) const {
  const auto* now = newest();
  if (now != nullptr &&
      std::make_tuple(m.id(), m.step) <= std::make_tuple(now->says.id(), now->step))
    return {};
  return failure(errc::unavailable,
                 fmt::format("step {} was complete, and is not there any more: its directory was "
                             "emptied or replaced meanwhile",
                             m.step));
}

/// A step that is complete already by this very manifest is left as it is; by an older save's with
/// the same files it becomes the newer save's.
result<void> step_catalog::check_commit(const found_step& known, const manifest& m) {
  if (known.directory.empty())
    return damaged_marker(known);
  if (known.is_unreadable())
    return cannot_tell(known);
  if (m.id() < known.begun_by)
    return begun_by_newer(m.step, known.begun_by);
  if (known.is_complete() && m.id() < known.says.id())
    return begun_by_newer(m.step, known.says.id());
  if (known.is_complete() && !same_shards(known.says, m))
    return failure(errc::refused, fmt::format("step {} is complete already, with other shards; "
                                              "begin it again to replace it",
                                              m.step));
  if (auto there = check_sizes(known, m); !there)
    return failure(there.error().code,
                   fmt::format("step {} is not what was reported: {}", m.step, there.error().what));
  return {};
}

} // namespace troupe::ckpt
