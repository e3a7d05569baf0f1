#include "ckpt/catalog/place_writer.hpp"

#include "ckpt/catalog/newest_generation.hpp"
#include "ckpt/catalog/step_names.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::ckpt {

/// Opened when it is needed first, and again after an error: what is there may have changed.
result<step_catalog*> place_writer::catalog(framework whose) {
  if (catalog_)
    return &*catalog_;
  auto opened = step_catalog::open(*storage_, node_);
  if (!opened)
    return tl::make_unexpected(opened.error());
  const auto* newest = opened->newest();
  const auto trackers =
      newest ? trackers_of(whose, newest->step, newest->directory) : std::vector<tracker>{};
  if (const auto pointed = opened->point(trackers); !pointed)
    return tl::make_unexpected(pointed.error());
  catalog_ = std::move(*opened);
  return &*catalog_;
}

void place_writer::forget() {
  catalog_.reset();
  begun_.clear();
}

/// The newest complete step is not written again: there is nothing newer to fall back on.
const found_step* place_writer::saved_before(const step_catalog& known, std::uint64_t step) const {
  const auto* newest = known.newest();
  return newest != nullptr && newest->step == step ? newest : nullptr;
}

result<ports::receipt> place_writer::receipt_of(const found_step& complete,
                                                const persist_request& snapshot) const {
  for (const auto& s : complete.says.shards)
    if (s.name == snapshot.to.file)
      return s.file;
  return failure(errc::refused,
                 fmt::format("step {} is complete in '{}', without a file {}: a world of {} saved "
                             "it; it stays",
                             snapshot.step, complete.directory, snapshot.to.file,
                             complete.says.world_size));
}

result<ports::receipt> place_writer::write(const persist_request& snapshot, ports::bytes_view bytes,
                                           const std::atomic<bool>& stop) {
  // First of all: a complete step of a newer generation must not pass for this one's.
  if (const auto fenced = check_newest(*storage_, snapshot.made_by); !fenced)
    return tl::make_unexpected(fenced.error());
  const auto known = catalog(snapshot.to.whose);
  if (!known)
    return tl::make_unexpected(known.error());
  const auto this_save = std::make_pair(snapshot.step, snapshot.made_by);
  // Another node may have completed it: a shard that comes late must not replace one of that.
  if (begun_.count(this_save) == 0)
    if (const auto again = (*known)->look_again(snapshot.step); !again)
      return tl::make_unexpected(again.error());
  if (const auto* before = saved_before(**known, snapshot.step))
    return receipt_of(*before, snapshot);
  if (begun_.count(this_save) == 0) {
    if (const auto begun = (*known)->begin(snapshot.step, snapshot.to.directory); !begun) {
      forget();
      return tl::make_unexpected(begun.error());
    }
    begun_.insert(this_save);
  }
  auto put =
      (*known)->claim(snapshot.step, snapshot.to.file).and_then([this, &snapshot, bytes, &stop] {
        return storage_->put(file_in(snapshot.to.directory, snapshot.to.file), bytes, stop);
      });
  if (!put) {
    (*known)->give_up(snapshot.step);
    begun_.erase(this_save);
  }
  return put;
}

result<std::uint64_t> place_writer::commit(const commit_order& order) {
  if (const auto fenced = become_newest(*storage_, order.says.made_by); !fenced)
    return tl::make_unexpected(fenced.error());
  const auto known = catalog(order.to.whose);
  if (!known)
    return tl::make_unexpected(known.error());
  const auto step = order.says.step;
  begun_.erase({step, order.says.made_by});
  if (const auto again = order.follows ? (*known)->look_again(step) : (*known)->look_around();
      !again)
    return tl::make_unexpected(again.error());
  if (const auto* before = saved_before(**known, step))
    return before->says.sequence;
  const auto done = (*known)->commit(
      order.says, trackers_of(order.to.whose, step, order.to.directory), order.to.keep);
  if (!done) {
    forget();
    return tl::make_unexpected(done.error());
  }
  return done->sequence;
}

} // namespace troupe::ckpt
