#pragma once

#include "ckpt/catalog/checkpoint_host.hpp"
#include "ckpt/catalog/step_catalog.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace troupe::ckpt {

/// What one node writes at one place: shards of its own, and the manifest of a step where it is the
/// committer. All of it may be repeated, by this process and by its successor. Blocks.
class place_writer {
 public:
  place_writer(std::unique_ptr<ports::storage> storage, node_name node)
      : storage_(std::move(storage)), node_(std::move(node)) {}

  /// A shard that is durable under its name already, of this very save, is not written again.
  /// `refused` if a newer generation than the snapshot's has completed a step here; a commit as
  /// well.
  result<ports::receipt> write(const persist_request& snapshot, ports::bytes_view bytes,
                               const std::atomic<bool>& stop);
  /// The sequence of the step here.
  result<std::uint64_t> commit(const commit_order& order);

  std::string describe() const { return storage_->describe(); }

 private:
  result<step_catalog*> catalog(framework whose);
  void forget();
  const found_step* saved_before(const step_catalog& known, std::uint64_t step) const;
  result<ports::receipt> receipt_of(const found_step& complete,
                                    const persist_request& snapshot) const;

  std::unique_ptr<ports::storage> storage_;
  node_name node_;
  std::optional<step_catalog> catalog_;
  /// Steps that were begun here, and by which generation.
  std::set<std::pair<std::uint64_t, generation>> begun_;
};

} // namespace troupe::ckpt
