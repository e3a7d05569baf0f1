#pragma once

#include "ckpt/catalog/checkpoint_host.hpp"
#include "ckpt/catalog/step_catalog.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace troupe::ckpt {

/// What the writers of one process and place share: training has gone back, and saves a step under
/// the number of one that retention is about to remove. Without this the new save would lose its
/// marker, or the files that it has found there with its own bytes.
class steps_saved_again {
 public:
  virtual ~steps_saved_again() = default;
  /// Does it while no other writer does anything so. Theirs are threads of one process, or none.
  virtual void alone(const std::function<void()>& what) { what(); }

  // Alone only.
  void begins(std::uint64_t step, const save_id& by) { saves_[step] = by; }
  /// All saves before this one have ended.
  void ended_before(const save_id& open_from);
  bool holds(std::uint64_t step) const { return saves_.count(step) != 0; }

 private:
  std::map<std::uint64_t, save_id> saves_;
};

/// What one node writes at one place: shards of its own, and the manifest of a step where it is the
/// committer. All of it may be repeated, by this process and by its successor. Blocks.
///
/// Several may be at work on one place, of one process too: one writes shards while another
/// completes the step before. What they know of each other is what is there.
class place_writer {
 public:
  place_writer(std::unique_ptr<ports::storage> storage, node_name node,
               std::shared_ptr<steps_saved_again> saved = std::make_shared<steps_saved_again>())
      : storage_(std::move(storage)), node_(std::move(node)), saved_(std::move(saved)) {}

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
  /// `put`: this save's shard has taken its place, in this attempt or in the one before.
  result<ports::receipt> write_once(const persist_request& snapshot, ports::bytes_view bytes,
                                    const std::atomic<bool>& stop, bool& put);
  bool lost_its_marker(const persist_request& snapshot);
  result<void> check_still_begun(const persist_request& snapshot);
  bool completed_by_another(const step_catalog& known, const manifest& says) const;

  std::unique_ptr<ports::storage> storage_;
  node_name node_;
  std::shared_ptr<steps_saved_again> saved_;
  std::optional<step_catalog> catalog_;
  std::vector<std::string> warnings_;
};

} // namespace troupe::ckpt
