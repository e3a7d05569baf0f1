#pragma once

#include "ckpt/catalog/checkpoint_host.hpp"
#include "ckpt/catalog/step_catalog.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace troupe::ckpt {

/// What one node writes at one place: shards of its own, and the manifest of a step where it is the
/// committer. All of it may be repeated, by this process and by its successor. Blocks.
///
/// Several may be at work on one place, of one process too: one writes shards while another
/// completes the step before. What they know of each other is what is there.
class place_writer {
 public:
  place_writer(std::unique_ptr<ports::storage> storage, node_name node)
      : storage_(std::move(storage)), node_(std::move(node)) {}

  /// A shard that a complete step has already, of this save or with the same bytes, is not written
  /// again. `refused` if a newer generation than the snapshot's has completed a step here.
  result<ports::receipt> write(const persist_request& snapshot, ports::bytes_view bytes,
                               const std::atomic<bool>& stop);
  /// `refused` as for write.
  result<completed> commit(const commit_order& order);
  /// Removes what need not be kept. Takes as long as the storage takes; what it could not do is
  /// among the next commit's warnings.
  void retain(const retain_order& order);

  std::string describe() const { return storage_->describe(); }

 private:
  result<step_catalog*> catalog(framework whose);
  result<ports::receipt> write_once(const persist_request& snapshot, ports::bytes_view bytes,
                                    const std::atomic<bool>& stop);
  bool lost_its_marker(const persist_request& snapshot);
  result<void> check_still_begun(const persist_request& snapshot);
  bool completed_by_another(const step_catalog& known, const manifest& says) const;

  std::unique_ptr<ports::storage> storage_;
  node_name node_;
  std::optional<step_catalog> catalog_;
  std::vector<std::string> warnings_;
};

} // namespace troupe::ckpt
