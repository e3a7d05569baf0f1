#include "ckpt/catalog/place_writer.hpp"

#include "ckpt/catalog/newest_generation.hpp"
#include "ckpt/catalog/shard_files.hpp"
#include "ckpt/catalog/step_names.hpp"

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <iterator>

namespace troupe::ckpt {

namespace {

/// The shard of a complete step that is this very snapshot: of the same save, whose process or
/// supervisor has died meanwhile, or with the same bytes. Without that a step that is complete
/// would be begun again, and be incomplete until all its shards are written once more.
std::optional<ports::receipt> written_before(const step_catalog& all, const found_step* known,
                                             const persist_request& snapshot,
                                             ports::bytes_view bytes) {
  if (known == nullptr || !known->is_complete() || known->directory != snapshot.to.directory)
    return std::nullopt;
  const auto& shards = known->says.shards;
  const auto found = std::find_if(shards.begin(), shards.end(), [&snapshot](const shard& s) {
    return s.name == snapshot.to.file;
  });
  if (found == shards.end())
    return std::nullopt;
  if (known->says.id() == snapshot.id())
    return found->file;
  if (all.is_made_anew(*known, snapshot.id(), snapshot.to.resumed_from))
    return std::nullopt; // What is on the disk may be damaged, whatever its manifest says.
  const auto named = named_file(bytes);
  const bool same = found->file.bytes == named.size && shards.size() == snapshot.to.shards &&
                    found->file.crc32 == libdeflate_crc32(0, named.data, named.size);
  return same ? std::optional(found->file) : std::nullopt;
}

result<void> look_for_retention(step_catalog& known, const retain_order& order) {
  if (order.ended)
    if (auto looked = known.look_again(*order.ended); !looked)
      return looked;
  return known.look_around();
}

} // namespace

void steps_saved_again::ended_before(const save_id& open_from) {
  for (auto at = saves_.begin(); at != saves_.end();)
    at = at->second < open_from ? saves_.erase(at) : std::next(at);
}

/// Opened when it is needed first, and again after an error: what is there may have changed.
result<step_catalog*> place_writer::catalog(framework whose) {
  if (catalog_)
    return &*catalog_;
  auto opened = step_catalog::open(*storage_, node_);
  if (!opened)
    return tl::make_unexpected(opened.error());
  if (const auto restored = opened->restore_markers(); !restored)
    return tl::make_unexpected(restored.error());
  if (const auto pointed = opened->point(whose); !pointed)
    return tl::make_unexpected(pointed.error());
  catalog_ = std::move(*opened);
  return &*catalog_;
}

/// A retention removes what an earlier save of the step has left unfinished, and no file system
/// removes a marker only if it is still that save's. If this save's marker went with it, the save
/// is begun once more.
result<ports::receipt> place_writer::write(const persist_request& snapshot, ports::bytes_view bytes,
                                           const std::atomic<bool>& stop) {
  saved_->alone([&] { saved_->begins(snapshot.step, snapshot.id()); });
  bool put = false;
  auto written = write_once(snapshot, bytes, stop, put);
  if (!written && written.error().code == errc::refused && lost_its_marker(snapshot))
    return write_once(snapshot, bytes, stop, put);
  return written;
}

/// A step that a newer save has overtaken was removed for good.
bool place_writer::lost_its_marker(const persist_request& snapshot) {
  if (!catalog_ || !catalog_->look_around())
    return false;
  const auto* known = catalog_->find(snapshot.step);
  const auto* newest = catalog_->newest();
  return (known == nullptr || known->begun_by == snapshot.id()) &&
         (newest == nullptr || newest->says.id() < snapshot.id());
}

result<ports::receipt> place_writer::write_once(const persist_request& snapshot,
                                                ports::bytes_view bytes,
                                                const std::atomic<bool>& stop, bool& put) {
  // First of all: a complete step of a newer generation must not pass for this one's.
  if (const auto fenced = check_newest(*storage_, snapshot.made_by); !fenced)
    return tl::make_unexpected(fenced.error());
  const auto known = catalog(snapshot.to.whose);
  if (!known)
    return tl::make_unexpected(known.error());
  if (const auto looked = (*known)->look_again(snapshot.step); !looked)
    return tl::make_unexpected(looked.error());
  const auto* before = (*known)->find(snapshot.step);
  const auto ours = before != nullptr && before->is_complete()
                        ? (*known)->is_of_line(*before, snapshot.made_by)
                        : result<bool>(true);
  if (!ours)
    return tl::make_unexpected(ours.error());
  if (const auto receipt = *ours ? written_before(**known, before, snapshot, bytes) : std::nullopt)
    return *receipt;
  // Whether it is the newest is asked rarely: only of a step that was saved before.
  const bool saved_before = before != nullptr && before->is_complete();
  if (saved_before)
    if (const auto looked = (*known)->look_around(); !looked)
      return tl::make_unexpected(looked.error());
  const auto& to = snapshot.to;
  auto begun = (*known)->begin(snapshot.step, to.directory, snapshot.id(), to.resumed_from);
  if (begun && saved_before) // Trackers may name it.
    begun = (*known)->point(to.whose);
  if (!begun) {
    catalog_.reset();
    return tl::make_unexpected(begun.error());
  }
  const auto written = (*known)->claim(snapshot.step, to.file, put).and_then([&] {
    return put_shard(*storage_, to, bytes, stop, [&] { return check_still_begun(snapshot); });
  });
  put = put || written.has_value();
  if (!written) {
    // Its directory may have been made anew for a step that was removed. As the step's it goes with
    // the next retention; without an owner it would stay, empty.
    if (written.error().code == errc::refused && to.directory != in_place)
      (void)(*known)->check_put(snapshot.step, to.directory, to.file, snapshot.id());
    return written;
  }
  return (*known)->check_put(snapshot.step, to.directory, to.file, snapshot.id()).map([&written] {
    return *written;
  });
}

/// Writing takes long: meanwhile a newer save may have begun the step again and even completed it,
/// and a newer generation may save here. Its file is not replaced then.
result<void> place_writer::check_still_begun(const persist_request& snapshot) {
  if (auto fenced = check_newest(*storage_, snapshot.made_by); !fenced)
    return fenced;
  return catalog_->check_begun(snapshot.step, snapshot.id());
}

result<completed> place_writer::commit(const commit_order& order) {
  if (const auto fenced = become_newest(*storage_, order.says.made_by); !fenced)
    return tl::make_unexpected(fenced.error());
  const auto known = catalog(order.to.whose);
  if (!known)
    return tl::make_unexpected(known.error());
  bool shared = false;
  const auto done = (*known)->look_around().and_then([&, this] {
    shared = completed_by_another(**known, order.says);
    auto says = order.says;
    says.completed_by = node_;
    return (*known)->commit(says, order.to.whose);
  });
  if (!done) {
    catalog_.reset();
    return tl::make_unexpected(done.error());
  }
  auto warnings = std::exchange(warnings_, {});
  auto more = (*known)->take_warnings();
  std::move(more.begin(), more.end(), std::back_inserter(warnings));
  return completed{std::move(warnings), shared};
}

bool place_writer::completed_by_another(const step_catalog& known, const manifest& says) const {
  const auto* before = known.find(says.step);
  return before != nullptr && before->is_complete() && before->says.id() == says.id() &&
         !before->says.completed_by.empty() && before->says.completed_by != node_;
}

void place_writer::retain(const retain_order& order) {
  const auto known = catalog(order.to.whose);
  const auto looked =
      known ? look_for_retention(**known, order) : tl::make_unexpected(known.error());
  if (!looked)
    return warnings_.push_back("earlier steps are not removed: " + looked.error().what);
  retained done;
  saved_->alone([&] {
    saved_->ended_before(order.now.open_from);
    done = (*known)->retain(order.to.keep, order.now, order.by,
                            [this](std::uint64_t step) { return saved_->holds(step); });
  });
  if (done.not_removed)
    warnings_.push_back("an earlier step could not be removed: " + done.not_removed->what);
}

} // namespace troupe::ckpt
