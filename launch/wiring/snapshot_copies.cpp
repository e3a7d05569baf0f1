#include "launch/wiring/snapshot_copies.hpp"

#include "ckpt/limits.hpp"

#include <malloc.h>

#include <utility>

namespace troupe::launch {

namespace {

/// Else the C library gives the memory of every few parts back to the system, and asks for it
/// again: that takes more time than sending them.
void keep_memory_of_parts() {
  constexpr int threshold = 2 * limits::copy_window;
  ::mallopt(M_MMAP_THRESHOLD, threshold);
  ::mallopt(M_TRIM_THRESHOLD, threshold);
}

} // namespace

result<std::unique_ptr<snapshot_copies>>
snapshot_copies::open(const std::shared_ptr<ports::bulk_links>& bulk, const node_name& node,
                      const std::vector<std::vector<int>>& memory, const log::sink& sink) {
  std::unique_ptr<snapshot_copies> made(new snapshot_copies);
  keep_memory_of_parts();
  auto target = ckpt::replication_target::open(bulk, made->owners_, memory, sink);
  if (!target)
    return tl::make_unexpected(target.error());
  made->target_ = std::move(*target);
  made->source_ = std::make_shared<ckpt::replication_source>(bulk, node);
  return made;
}

std::shared_ptr<ckpt::snapshot_copier>
snapshot_copies::copier_of(const std::shared_ptr<ckpt::snapshot_watch>& memory) const {
  auto give = [source = std::weak_ptr<ckpt::replication_source>(source_)](
                  const ckpt::snapshot_to_copy& snapshot, ports::bytes_view bytes,
                  std::function<void(result<void>)> done) {
    if (const auto living = source.lock())
      living->give(snapshot, bytes, std::move(done));
    else
      done(failure(errc::closed, "this node leaves the job"));
  };
  return std::make_shared<ckpt::snapshot_copier>(memory, std::move(give), owners_);
}

} // namespace troupe::launch
