#include "ckpt/catalog/foreign_steps.hpp"
#include "ckpt/catalog/step_catalog.hpp"
#include "ckpt/catalog/step_names.hpp"

#include <fmt/format.h>

#include <utility>

// What readers look at that know nothing of manifests.
namespace troupe::ckpt {

/// Another committer may complete a newer step between the look at what is newest and the write to
/// a tracker, and write the same tracker first. So this one looks again afterwards: the last of all
/// writes names the newest.
result<void> step_catalog::point(framework whose) {
  trackers_behind_ = true;
  for (const auto* named = newest(); named != nullptr;) {
    const auto id = named->says.id();
    if (auto pointed = point_at(*named, whose); !pointed)
      return pointed;
    if (auto looked = look_around(); !looked)
      return looked;
    named = newest();
    if (named != nullptr && named->says.id() == id)
      break;
  }
  found_newest_.reset();
  trackers_behind_ = false;
  return {};
}

result<void> step_catalog::point_at(const found_step& named, framework whose) {
  // Its writer may have ended before it was durable, and it must be before a tracker names it. What
  // may not be written was not written here: it is read-only, or behind a link.
  if (found_newest_ == named.step)
    if (auto again =
            storage_->replace(manifest_of_step(named.step, named.directory), to_text(named.says));
        !again && again.error().code != errc::refused)
      return again;
  for (const auto& one : trackers_of(whose, named.step, named.directory)) {
    const auto may = may_point(one, named);
    if (!may)
      return tl::make_unexpected(may.error());
    if (*may)
      if (auto replaced = storage_->replace(one.name, one.content); !replaced)
        return replaced;
  }
  return {};
}

/// Other tools read trackers, and may have checkpoints of their own beside ours.
result<bool> step_catalog::may_point(const tracker& to, const found_step& named) {
  const auto found = foreign_step_of(*storage_, to.name);
  if (!found)
    return tl::make_unexpected(found.error());
  const auto& foreign = *found;
  if (!foreign || foreign->step <= named.step)
    return true;
  if (told_.emplace(to.name, foreign->step).second)
    warnings_.push_back(fmt::format(
        "'{}' names step {} in '{}', which Troupe has not written and which is later than step {}: "
        "it stays, and readers of it do not see Troupe's steps until one is later",
        to.name, foreign->step, foreign->directory, named.step));
  return false;
}

} // namespace troupe::ckpt
