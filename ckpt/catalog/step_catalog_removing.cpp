#include "ckpt/catalog/confirmed_saves.hpp"
#include "ckpt/catalog/step_catalog.hpp"
#include "runtime/base/rare.hpp"

#include <algorithm>
#include <utility>

// What retention removes. Others may write to the same place meanwhile; see
// step_catalog_writing.cpp.
namespace troupe::ckpt {

retained step_catalog::retain(retention keep, const retention_point& now, generation by,
                              const std::function<bool(std::uint64_t)>& stays) {
  retained done;
  if (by == generation{})
    by = now.committed ? now.committed->made_by : now.open_from.made_by;
  const auto of_line = line_for(by);
  if (!of_line) {
    done.not_removed = of_line.error();
    return done;
  }
  std::set<save_id> confirmed;
  if (now.committed && !keeps_all(keep)) {
    auto known = confirm(*now.committed);
    if (!known) {
      done.not_removed = std::move(known.error());
      return done;
    }
    confirmed = std::move(*known);
  }
  // One that has changed since it was seen may have to go all the same.
  const auto going = [&] {
    auto steps = removable(seen(confirmed, *of_line), keep, now);
    steps.erase(std::remove_if(steps.begin(), steps.end(), stays), steps.end());
    return steps;
  };
  if (remove_all(going(), done))
    remove_all(going(), done);
  if (now.committed && !done.not_removed)
    if (auto forgotten = forget_removed(std::move(confirmed), *now.committed); !forgotten)
      done.not_removed = std::move(forgotten.error());
  return done;
}

/// True if one of them has changed, and so was left.
bool step_catalog::remove_all(const std::vector<std::uint64_t>& going, retained& done) {
  bool changed = false;
  for (const auto step : going) {
    if (!look_before_removing(step)) {
      changed = true;
      continue;
    }
    if (auto removed = remove(step); !removed) {
      done.not_removed = std::move(removed.error());
      return false;
    }
    if (find(step) == nullptr)
      done.removed.push_back(step);
  }
  return changed;
}

std::vector<step_seen> step_catalog::seen(const std::set<save_id>& confirmed,
                                          const line& of) const {
  std::vector<step_seen> all;
  all.reserve(steps_.size());
  for (const auto& [step, found] : steps_) {
    const auto id = found.is_complete() ? found.says.id() : found.begun_by;
    const bool of_line =
        found.marked && (found.is_complete() ? of.holds(id) : of.touches(id.made_by));
    all.push_back({step, found.state, id, confirmed.count(id) != 0, of_line});
  }
  return all;
}

/// Of what is not complete here nothing has to be on record.
result<std::set<save_id>> step_catalog::confirm(const save_id& committed) {
  auto known = confirmed_saves(*storage_);
  const bool here = std::any_of(steps_.begin(), steps_.end(), [&committed](const auto& one) {
    return one.second.is_complete() && one.second.says.id() == committed;
  });
  if (!known || !here || !known->insert(committed).second)
    return known;
  if (auto written = confirm_save(*storage_, committed); !written)
    return tl::make_unexpected(std::move(written.error()));
  return known;
}

/// Records of older saves that have no step here any more are of no use.
result<void> step_catalog::forget_removed(std::set<save_id> confirmed, const save_id& committed) {
  for (const auto& [step, found] : steps_)
    confirmed.erase(found.is_complete() ? found.says.id() : found.begun_by);
  for (const auto& id : confirmed)
    if (id < committed)
      if (auto forgotten = forget_save(*storage_, id); !forgotten)
        return forgotten;
  return {};
}

/// Another process may have begun, completed or removed it since it was seen. Then the next commit
/// decides, by what is there by then.
bool step_catalog::look_before_removing(std::uint64_t step) {
  const auto before = *find(step);
  const auto looked = look_again(step);
  const auto* now = find(step);
  const bool same = looked && now != nullptr && now->state == before.state &&
                    now->begun_by == before.begun_by && now->says.id() == before.says.id();
  TROUPE_RARE_IF(!same, "step catalog: a step that was to be removed has changed");
  return same;
}

/// In this order a crash leaves a step that is complete, or one that the next retention removes.
result<void> step_catalog::remove(std::uint64_t step) {
  auto& going = steps_.at(step);
  const auto folder = folder_of(step, going.directory);
  if (auto removed = storage_->remove(manifest_of_step(step, going.directory)); !removed)
    return removed;
  going.state = step_state::incomplete;
  going.says = {};
  going.why = "it is being removed";
  const auto gone = going;
  auto files = claimed_by(gone);
  if (!files)
    return tl::make_unexpected(std::move(files.error()));
  // Also those of which nothing is there: the process that removed them may have ended before that
  // was durable.
  for (const auto& file : *files)
    if (auto removed = storage_->remove(file); !removed)
      return removed;
  bool late = false;
  if (gone.directory == in_place) {
    const auto left = remove_claims(gone, *files);
    if (!left)
      return tl::make_unexpected(left.error());
    late = !left->empty();
  }
  if (late) {
    // The marker of a save that has begun the step meanwhile is its own.
    if (auto looked = look_again(step); !looked)
      return looked;
    const auto* now = find(step);
    if (now != nullptr && now->begun_by != gone.begun_by) {
      const auto claimed = claim_late(gone, *files);
      return claimed ? result<void>() : tl::make_unexpected(claimed.error());
    }
    steps_[step] = gone;
  } else if (auto removed = storage_->remove(folder); !removed) {
    return removed;
  }
  // Without it a process that is late puts nothing any more.
  if (auto removed = storage_->remove(marker_of(step)); !removed)
    return removed;
  return end_removal(step, *files, late);
}

/// Those of `files`, and no others: a process that was late has made its claim since, for a file
/// that nothing else would remove. Answers these.
result<std::vector<std::string>>
step_catalog::remove_claims(const found_step& of, const std::vector<std::string>& files) {
  for (const auto& file : files)
    if (auto removed = storage_->remove(claim_of(of.step, file)); !removed)
      return tl::make_unexpected(std::move(removed.error()));
  return claimed_by(of);
}

/// The files of a step that is in place; none of another.
result<std::vector<std::string>> step_catalog::claimed_by(const found_step& found) {
  std::vector<std::string> files;
  if (found.directory != in_place)
    return files;
  const auto folder = folder_of(found.step, found.directory);
  const auto claims = storage_->list(folder);
  if (!claims)
    return tl::make_unexpected(claims.error());
  for (const auto& claim : *claims) {
    auto file = claim.name.substr(folder.size() + 1);
    if (check_file_in_place(file)) // others are no claims of ours
      files.push_back(std::move(file));
  }
  return files;
}

/// A process that was late may have put a shard meanwhile, and have seen the marker after it. Then
/// the step is there again, and goes the next time.
result<void> step_catalog::end_removal(std::uint64_t step, std::vector<std::string> files,
                                       bool late) {
  const auto gone = steps_.at(step);
  if (gone.directory != in_place)
    files = {gone.directory};
  const auto there = claim_late(gone, files);
  if (!there)
    return tl::make_unexpected(there.error());
  if (!late && !*there) {
    steps_.erase(step);
    return {};
  }
  return storage_->replace(marker_of(step), to_text({gone.directory, gone.begun_by}));
}

/// Whether any of `files` is there again; in the place each of these gets its claim back.
result<bool> step_catalog::claim_late(const found_step& of, const std::vector<std::string>& files) {
  bool late = false;
  for (const auto& file : files) {
    const auto there = storage_->list(file);
    if (!there)
      return tl::make_unexpected(there.error());
    if (there->empty())
      continue;
    late = true;
    if (of.directory == in_place)
      if (auto claimed = storage_->replace(claim_of(of.step, file), ""); !claimed)
        return tl::make_unexpected(claimed.error());
  }
  return late;
}

} // namespace troupe::ckpt
